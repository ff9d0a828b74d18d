-- SPDX-License-Identifier: BSD-3-Clause
-- Runs as jobs that were told to PyTorch's relay (docs/ci/results-export.md). In DuckDB's SQL.
WITH failed AS (
    SELECT
        run,
        -- Numbers as in RFC-0054.
        list({
            'name': check_id,
            'classname': surface,
            'message': left(coalesce(message, outcome), 1000),
            'duration_s': duration_s
        } ORDER BY check_id)[:1000] AS tests
    FROM results
    WHERE is_bad(outcome, waiver_list)
    GROUP BY run
),

jobs AS (
    SELECT
        *,
        coalesce(torch_git, torch) AS delivery,
        'conformance' AS workflow,
        backend || ' ' || line AS job,
        started AT TIME ZONE 'UTC' AS began
    FROM runs
)

SELECT
    concat_ws('/', repository(), delivery, workflow, job, id) AS "dynamoKey",
    'completed' AS status,
    repository() AS downstream_repo,
    'pytorch/pytorch' AS upstream_repo,
    0::UBIGINT AS pr_number,
    delivery AS pytorch_head_sha,
    delivery AS delivery_id,
    '' AS workflow_run_url,
    workflow AS workflow_name,
    job AS job_name,
    id AS check_run_id,
    id AS run_id,
    1::UINTEGER AS run_attempt,
    if(is_green(complete, bad, totals), 'success', 'failure') AS conclusion,
    NULL::DOUBLE AS queue_time,
    NULL::DOUBLE AS execution_time,
    began AS started_at,
    began + to_microseconds((duration_s * 1e6)::BIGINT) AS completed_at,
    list_sum(map_values(totals))::UBIGINT AS total_tests,
    totals['pass']::UBIGINT AS passed_tests,
    bad::UBIGINT AS failed_tests,
    (total_tests - passed_tests - failed_tests)::UBIGINT AS skipped_tests,
    coalesce(to_json(tests)::VARCHAR, '') AS failed_tests_json,
    '' AS artifact_url,
    to_json({
        'sdk': coalesce(driver ->> '$.version', ''),
        'device': array_to_string(devices, ', '),
        'driver': coalesce(driver ->> '$.name', ''),
        'torch': torch,
        'suite': suite,
        'python': python,
        'platform': platform
    })::VARCHAR AS environment,
    '' AS downstream_repo_level,
    if(line = 'nightly', 'nightly', 'periodic') AS event_type
FROM jobs LEFT JOIN failed ON run = id
ORDER BY started, id
