-- SPDX-License-Identifier: BSD-3-Clause
-- Results of the runs in `draw` for the checks in `checks`, drawn by hashes of chip, check and night.
CREATE TABLE drawn AS
WITH hashed AS (
    SELECT draw.*, checks.*, hash(chip, nr) AS h, hash(chip, nr, night) AS h_night
    FROM draw CROSS JOIN checks
), decided AS (
    SELECT *, CASE
        WHEN cut AND nr > 6000 THEN 'not_run'
        WHEN h_night % 30000 = 0 THEN 'error'
        WHEN h % 1000 < 15 THEN 'fail'
        WHEN h % 1000 < 35 THEN 'xfail'
        WHEN h % 1000 < 75 THEN 'unsupported'
        -- Broken once in the year, for up to a month.
        WHEN (h // 1000) % 60 = 0
            AND night - ((h // 100000) % 365)::INTEGER BETWEEN 0 AND ((h // 1000000) % 30)::INTEGER
            THEN 'fail'
        ELSE 'pass' END AS outcome
    FROM hashed
)
SELECT
    run, id AS check_id, surface, tier, level, requirements, outcome,
    CASE
        WHEN outcome IN ('unsupported', 'not_run', 'error') THEN NULL
        WHEN (h // 7) % 100 < 8 THEN 'fallback'
        WHEN (h // 7) % 100 < 20 THEN 'composite'
        ELSE 'native' END AS evidence,
    round(0.0005 + (h % 997) / 50000.0 + (h_night % 89) / 100000.0, 6) AS duration_s,
    CASE outcome
        WHEN 'fail' THEN 'AssertionError: ' || h_night % 1000 || ' of 4096 elements differ; first at ['
            || h % 64 || ', ' || h % 61 || ']: ' || h % 977 / 1000.0 || ' and ' || h_night % 877 / 1000.0
            || '; max abs error ' || h_night % 1000 / 100.0 || E'\n  in float32, seed 0, sample ' || h % 30
        WHEN 'error' THEN 'RuntimeError: device is busy (code ' || h_night % 50 || ')' END AS message,
    CASE outcome
        WHEN 'xfail' THEN 'known: rounding of halves, see issue ' || h % 300
        WHEN 'unsupported' THEN 'needs capability ''peer_copy'''
        WHEN 'not_run' THEN 'the run ended before' END AS reason,
    NULL AS issue,
    CASE outcome WHEN 'fail' THEN 'some_values' END AS mismatch,
    CASE WHEN outcome IN ('fail', 'error') THEN E'import torch\nx = torch.randn(64, 64, device="chip")\n'
        || 'torch.testing.assert_close(x.op_' || h % 700 || '(), x.cpu())' END AS repro,
    CASE WHEN evidence = 'fallback' THEN ['aten::op_' || h % 700] ELSE [] END AS fallbacks,
    CASE outcome WHEN 'xfail' THEN 'xfail' END AS waiver_list,
    CASE outcome WHEN 'xfail' THEN id END AS waiver_id,
    (h % 40)::BIGINT AS samples
FROM decided;

CREATE TABLE counted AS
SELECT run, map_from_entries(list((outcome, n))) AS totals FROM (
    SELECT run, outcome, count(*)::INTEGER AS n FROM drawn GROUP BY ALL) GROUP BY run;
CREATE TABLE evident AS
SELECT run, map_from_entries(list((evidence, n))) AS evidence FROM (
    SELECT run, evidence, count(*)::INTEGER AS n FROM drawn WHERE evidence IS NOT NULL GROUP BY ALL)
GROUP BY run;
CREATE TABLE of_surface AS
SELECT run, map_from_entries(list((surface, counts))) AS surfaces FROM (
    SELECT run, surface, map_from_entries(list((outcome, n))) AS counts FROM (
        SELECT run, surface, outcome, count(*)::INTEGER AS n FROM drawn GROUP BY ALL)
    GROUP BY run, surface)
GROUP BY run;
CREATE TABLE bad AS
SELECT run, count(*) FILTER (outcome IN ('fail', 'error'))::INTEGER AS bad FROM drawn GROUP BY run;
CREATE TABLE judged AS
SELECT told.* REPLACE (
    map_concat(told.totals, counted.totals) AS totals,
    map_concat(told.evidence, evident.evidence) AS evidence,
    of_surface.surfaces AS surfaces,
    bad.bad AS bad)
FROM told, counted, evident, of_surface, bad
WHERE told.id = counted.run AND told.id = evident.run AND told.id = of_surface.run AND told.id = bad.run;
