-- SPDX-License-Identifier: BSD-3-Clause
-- Results with what one asks for them by; what is not known is empty. In DuckDB's SQL.
SELECT
    run AS check_run_id,
    backend,
    line,
    torch,
    started AT TIME ZONE 'UTC' AS started_at,
    check_id AS "check",
    surface,
    tier,
    results.level,
    requirements,
    outcome,
    coalesce(results.evidence, '') AS evidence,
    results.duration_s,
    coalesce(message, '') AS message,
    coalesce(reason, '') AS reason,
    coalesce(repro, '') AS repro,
    coalesce(fallbacks, []) AS fallbacks,
    coalesce(waiver_list || ': ' || waiver_id, '') AS waiver,
    samples
FROM results JOIN runs ON run = id
ORDER BY backend, line, started, run, check_id
