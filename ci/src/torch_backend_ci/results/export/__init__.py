# SPDX-License-Identifier: BSD-3-Clause
"""`results export`: a store as Parquet, CSV, NDJSON, or tables of ClickHouse."""
