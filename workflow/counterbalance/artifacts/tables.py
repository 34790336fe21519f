"""Reading and writing the declared tables: checked both ways, one writer, one row order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from counterbalance.artifacts.digest import LogicalDigest
from counterbalance.artifacts.schemas import ArtifactSchema
from counterbalance.errors import InputError
from counterbalance.files import replacing

_ROW_GROUP = 65_536

# Arrow's own allocators keep what is freed: buying 24,000 replies took 60 MB more with them.
pa.set_memory_pool(pa.system_memory_pool())


@dataclass(frozen=True)
class Written:
    """What a finished table holds: number of rows, content digest, and the digest without volatile columns."""

    rows: int
    digest: str
    stable_digest: str


class TableWriter:
    """Write a declared table batch by batch; nothing appears at the path before the block ends well.

    Rows must arrive in key order; a repeated or misplaced key is an error, here and not in a later stage.
    """

    def __init__(self, path: Path, schema: ArtifactSchema) -> None:
        self._path = path
        self._schema = schema
        self._digest = LogicalDigest(schema.arrow)
        self._stable = LogicalDigest(schema.arrow, set(schema.arrow.names) - schema.volatile)
        self._rows = 0
        self._last_key: tuple[Any, ...] | None = None

    def __enter__(self) -> Self:
        self._file = replacing(self._path)
        part = self._file.__enter__()
        # One fixed set of options, so that the same rows give the same bytes on every machine.
        self._writer = pq.ParquetWriter(
            part,
            self._schema.arrow,
            version="2.6",
            data_page_version="1.0",
            compression="zstd",
            compression_level=3,
            use_dictionary=True,
            write_statistics=True,
            store_schema=False,
            data_page_size=1 << 20,
        )
        return self

    def write(self, table: pa.Table) -> None:
        """Append rows (checked against the declaration; at most 65,536 rows go into one row group)."""
        table = check_table(table, self._schema, where=str(self._path)).combine_chunks()
        self._check_order(table)
        for batch in table.to_batches(max_chunksize=_ROW_GROUP):
            self._digest.update(batch)
            self._stable.update(batch)
            self._writer.write_batch(batch, row_group_size=_ROW_GROUP)
        self._rows += table.num_rows

    def result(self) -> Written:
        """Return row count and digests of what was written so far."""
        return Written(self._rows, self._digest.result(), self._stable.result())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rows == 0 and kind is None:
            self.write(self._schema.arrow.empty_table())
            self._digest.update(pa.RecordBatch.from_pylist([], schema=self._schema.arrow))
            self._stable.update(pa.RecordBatch.from_pylist([], schema=self._schema.arrow))
        self._writer.close()
        self._file.__exit__(kind, error, trace)

    def _check_order(self, table: pa.Table) -> None:
        if table.num_rows == 0:
            return
        key = self._schema.key
        order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in key]).to_numpy()
        moved = np.flatnonzero(order != np.arange(len(order)))
        if moved.size:
            row = self._rows + int(moved[0])
            raise InputError(f"{self._path.name} row {row}: rows are not sorted by {', '.join(key)}; sort them first")
        rows = [table.column(name).to_pylist() for name in key]
        keys = list(zip(*rows, strict=True))
        before = [self._last_key, *keys[:-1]]
        for index, (previous, current) in enumerate(zip(before, keys, strict=True)):
            if previous is not None and previous >= current:
                raise InputError(
                    f"{self._path.name} row {self._rows + index}: key {current!r} ({', '.join(key)}) is there twice "
                    "or out of order; every row needs its own key"
                )
        self._last_key = keys[-1]


def write_table(path: Path, table: pa.Table, schema: ArtifactSchema) -> Written:
    """Write a whole declared table atomically and return its digests."""
    with TableWriter(path, schema) as writer:
        writer.write(table)
    return writer.result()


def table_from_rows(rows: Iterable[Mapping[str, Any]], schema: ArtifactSchema) -> pa.Table:
    """Build a declared table from mappings, sorted by its key; unknown or missing columns are an error."""
    names = set(schema.arrow.names)
    listed = list(rows)
    for index, row in enumerate(listed):
        if row.keys() != names:
            odd = ", ".join(sorted(row.keys() ^ names))
            raise InputError(f"{schema.name} row {index}: columns differ from the declared ones: {odd}")
    try:
        table = pa.Table.from_pylist(listed, schema=schema.arrow)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{schema.name}: a value does not fit its declared type: {error}") from error
    return table.sort_by([(name, "ascending") for name in schema.key])


def read_table(path: Path, schema: ArtifactSchema, columns: list[str] | None = None) -> pa.Table:
    """Read a declared table, refusing unknown, missing or mistyped columns.

    Raises
    ------
    InputError
        If the file is missing, is not Parquet, or does not have the declared columns.
    """
    if not path.is_file():
        raise InputError(f"{path}: {schema.name} table is not there; run the stage that writes it")
    try:
        found = pq.read_schema(path).names
        table = pq.read_table(path, columns=columns, partitioning=None)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); restore it or run its stage again") from error
    if found != schema.arrow.names:
        odd = ", ".join(sorted(set(found) ^ set(schema.arrow.names))) or "their order"
        raise InputError(f"{path}: columns are not those of {schema.name} v{schema.version}: {odd} differ")
    wanted = schema.arrow if columns is None else pa.schema([schema.arrow.field(name) for name in columns])
    return _fit(table, wanted, where=str(path), name=schema.name)


def check_table(table: pa.Table, schema: ArtifactSchema, *, where: str) -> pa.Table:
    """Return the table with exactly the declared types, or raise `InputError` naming what differs."""
    if table.column_names != schema.arrow.names:
        odd = ", ".join(sorted(set(table.column_names) ^ set(schema.arrow.names))) or "their order"
        raise InputError(f"{where}: columns are not those of {schema.name} v{schema.version}: {odd} differ")
    return _fit(table, schema.arrow, where=where, name=schema.name)


def _fit(table: pa.Table, wanted: pa.Schema, *, where: str, name: str) -> pa.Table:
    for field in wanted:
        column = table.column(field.name)
        if not field.nullable and column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise InputError(f"{where} row {row}: {field.name!r} is empty, and {name} needs a value there")
    try:
        table = table.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InputError(f"{where}: {name} column types differ from the declared ones: {error}") from error
    for field in wanted:
        column = table.column(field.name)
        values = pc.list_flatten(column) if pa.types.is_list(field.type) else column
        if pa.types.is_floating(values.type) and not pc.all(pc.is_finite(values), min_count=0).as_py():
            raise InputError(f"{where}: {field.name!r} holds NaN or infinity; write null with a status and a reason")
    return table
