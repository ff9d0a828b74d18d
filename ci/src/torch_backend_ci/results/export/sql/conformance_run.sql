-- SPDX-License-Identifier: BSD-3-Clause
-- Runs, as the table has them: what is not known is empty. In DuckDB's SQL.
SELECT
    id AS check_run_id,
    backend,
    line,
    name,
    device_type,
    torch,
    coalesce(torch_git, '') AS torch_git,
    suite,
    coalesce(suite_commit, '') AS suite_commit,
    suite_digest,
    python,
    platform,
    coalesce(driver, '') AS driver,
    devices,
    seed,
    options,
    started AT TIME ZONE 'UTC' AS started_at,
    duration_s,
    complete,
    coalesce(cannot_load, '') AS cannot_load,
    map_from_entries([(entry.key, entry.value.value) FOR entry IN map_entries(capabilities)])
        AS capabilities,
    coalesce(why_not, '') AS why_not,
    coalesce(level, '') AS level,
    standings,
    totals,
    evidence,
    bad::UINTEGER AS bad
FROM runs
ORDER BY started, id
