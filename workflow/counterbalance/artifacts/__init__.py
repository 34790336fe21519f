"""Hashed tables and records: what every stage reads and leaves behind."""

from counterbalance.artifacts.digest import logical_digest
from counterbalance.artifacts.records import Material, Record, read_record, write_record
from counterbalance.artifacts.schemas import SCHEMAS, ArtifactSchema
from counterbalance.artifacts.tables import TableWriter, read_table, table_from_rows, write_table

__all__ = [
    "SCHEMAS",
    "ArtifactSchema",
    "Material",
    "Record",
    "TableWriter",
    "logical_digest",
    "read_record",
    "read_table",
    "table_from_rows",
    "write_record",
    "write_table",
]
