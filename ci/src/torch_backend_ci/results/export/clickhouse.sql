-- SPDX-License-Identifier: BSD-3-Clause
-- Tables of an export, for ClickHouse; docs/ci/results-export.md says what they are.
-- They may be created again, and rows loaded again: rows of one key become one.

-- What PyTorch's cross-repository CI relay keeps of a job of an out-of-tree backend: RFC-0054, as it
-- is deployed (pytorch/test-infra, clickhouse_db_schema/default.crcr_workflow_job/schema.sql at
-- 4a960e06). Names, types and order are PyTorch's, so that queries of its dashboard work here. Its
-- engine is SharedReplacingMergeTree, which only ClickHouse Cloud has. One row for each run.
CREATE TABLE IF NOT EXISTS crcr_workflow_job
(
    `dynamoKey` String COMMENT 'Repository, delivery, workflow, job and check_run_id, with slashes',
    `status` String COMMENT 'Always completed: a store has what is over',
    `downstream_repo` String COMMENT 'Owner and name of the repository whose backend it is',
    `upstream_repo` String,
    `pr_number` UInt64 COMMENT 'Of PyTorch; 0 for what no pull request caused',
    `pytorch_head_sha` String COMMENT 'The commit torch was built from, or its version',
    `delivery_id` String COMMENT 'The same: nobody delivered anything',
    `workflow_run_url` String,
    `workflow_name` String,
    `job_name` String DEFAULT '' COMMENT 'Backend and line of torch',
    `check_run_id` String DEFAULT '' COMMENT 'SHA-256 of the report',
    `run_id` String DEFAULT '' COMMENT 'SHA-256 of the report',
    `run_attempt` UInt32 DEFAULT 1,
    `conclusion` String COMMENT 'success or failure',
    `queue_time` Nullable(Float64) COMMENT 'Only the relay can measure it',
    `execution_time` Nullable(Float64) COMMENT 'Only the relay can measure it',
    `started_at` DateTime64(9),
    `completed_at` DateTime64(9),
    `total_tests` UInt64 DEFAULT 0,
    `passed_tests` UInt64 DEFAULT 0,
    `failed_tests` UInt64 DEFAULT 0,
    `skipped_tests` UInt64 DEFAULT 0,
    `failed_tests_json` String DEFAULT '' COMMENT 'name, classname, message, duration_s of at most 1,000',
    `artifact_url` String DEFAULT '',
    `environment` String DEFAULT '' COMMENT 'JSON: sdk, device and more',
    `downstream_repo_level` String DEFAULT '' COMMENT 'Of the relay: unknown to a store',
    `event_type` String DEFAULT 'pull_request' COMMENT 'nightly, or periodic for a release of torch',
    `_inserted_at` DateTime MATERIALIZED now(),
    `repository_full_name` String ALIAS downstream_repo,
    `duration_seconds` Float64
        ALIAS if(completed_at = toDateTime64(0, 9), 0, dateDiff(second, started_at, completed_at)),
    INDEX status_index status TYPE bloom_filter GRANULARITY 1,
    INDEX started_at_index started_at TYPE minmax GRANULARITY 1,
    INDEX completed_at_index completed_at TYPE minmax GRANULARITY 1,
    INDEX pr_number_index pr_number TYPE bloom_filter GRANULARITY 1,
    INDEX downstream_repo_index downstream_repo TYPE bloom_filter GRANULARITY 1
)
ENGINE = ReplacingMergeTree
ORDER BY (downstream_repo, delivery_id, dynamoKey);

-- What the relay's table has no place for. One row for each run, joined by `check_run_id`.
CREATE TABLE IF NOT EXISTS conformance_run
(
    `check_run_id` String COMMENT 'SHA-256 of the report',
    `backend` LowCardinality(String) COMMENT 'With the name of its driver: puone-sim',
    `line` LowCardinality(String) COMMENT 'Of torch: 2.13, nightly',
    `name` LowCardinality(String) COMMENT 'Of the backend, as in the report',
    `device_type` LowCardinality(String),
    `torch` LowCardinality(String),
    `torch_git` LowCardinality(String) COMMENT 'Empty if torch does not say it',
    `suite` LowCardinality(String),
    `suite_commit` LowCardinality(String) COMMENT 'Empty if the suite was installed',
    `suite_digest` LowCardinality(String),
    `python` LowCardinality(String),
    `platform` LowCardinality(String),
    `driver` String COMMENT 'JSON',
    `devices` Array(String),
    `seed` Int64,
    `options` String COMMENT 'JSON',
    `started_at` DateTime64(3, 'UTC'),
    `duration_s` Float64,
    `complete` Bool COMMENT 'Whether every selected check was executed or decided',
    `cannot_load` String COMMENT 'Why the backend did not come up; empty if it did',
    `capabilities` Map(LowCardinality(String), Bool),
    `why_not` String COMMENT 'Why it was not assessed; empty if it was',
    `level` LowCardinality(String) COMMENT 'That was reached; empty if none was',
    `standings` Map(LowCardinality(String), LowCardinality(String)) COMMENT 'Of each requirement',
    `totals` Map(LowCardinality(String), UInt32) COMMENT 'Checks by outcome',
    `evidence` Map(LowCardinality(String), UInt32) COMMENT 'Checks by native, composite, fallback',
    `bad` UInt32 COMMENT 'Checks that make the run red'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(started_at)
ORDER BY (backend, line, started_at, check_run_id);

-- RFC-0054 keeps failures as JSON in the row of their job, and leaves a table of tests to later. This
-- is ours: one row for each run and check, with the columns by which people look for them.
CREATE TABLE IF NOT EXISTS conformance_check
(
    `check_run_id` String COMMENT 'Of crcr_workflow_job and conformance_run',
    `backend` LowCardinality(String),
    `line` LowCardinality(String),
    `torch` LowCardinality(String),
    `started_at` DateTime64(3, 'UTC') COMMENT 'Of the run',
    `check` String COMMENT 'surface/topic:case:dtype',
    `surface` LowCardinality(String),
    `tier` LowCardinality(String),
    `level` LowCardinality(String) COMMENT 'must, should, may',
    `requirements` Array(LowCardinality(String)),
    `outcome` LowCardinality(String),
    `evidence` LowCardinality(String) COMMENT 'native, composite, fallback; empty if unknown',
    `duration_s` Float64,
    `message` String,
    `reason` String,
    `repro` String,
    `fallbacks` Array(String) COMMENT 'Operators that the CPU ran',
    `waiver` String COMMENT 'LIST: ID of the expectation that decided',
    `samples` Nullable(Int64) COMMENT 'Verifications inside the check'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(started_at)
ORDER BY (backend, line, check, started_at, check_run_id);
