"""Turns the new value of a column, as in SQL's SET, into an Arrow expression.

    value := column | literal | null | condition | (value) | -value | value (+ | - | * | /) value | text || text
           | concat(text, ...) | upper(text) | lower(text) | coalesce(value, ...) | nullif(value, value)
           | case when condition then value ... [else value] end | if(condition, value, value)

Columns, literals and conditions are as in a filter. A literal takes the type of the column that it is assigned to, or
computed with. Whole numbers that overflow and a division by zero are errors; `/` of whole numbers gives a fraction.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero
from sqlglot import expressions as sql

from eventide.rows.filter_expression import Node, Translation, is_column, literal, parsed, text_of
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, ArrowChunks, ArrowField, ArrowType
from eventide_adapters.format.encoding.columns.exact_cast import cast_whole, keeps_digits
from eventide_core.errors import InvalidFilterError, InvalidRecordError

_pc: Any = pc
"""The stubs know most functions only with arrays as arguments, not with expressions."""
Expression: TypeAlias = Any
"""A pc.Expression."""
_ARITHMETIC: dict[Node, Callable[[Any, Any], Any]] = {
    sql.Add: lambda one, other: one + other,
    sql.Sub: lambda one, other: one - other,
    sql.Mul: lambda one, other: one * other,
    sql.Div: lambda one, other: one / other,
}
_NO_KERNEL = re.compile(r"Function '\w+' has no kernel matching input types \((.*)\)")
_CONDITIONS = (
    sql.And, sql.Or, sql.Not, sql.Is, sql.In, sql.Like, sql.Between, sql.EQ, sql.NEQ, sql.LT, sql.LTE, sql.GT, sql.GTE,
)  # fmt: skip

_COMPUTED = (*_ARITHMETIC, sql.Neg, sql.DPipe, sql.Concat, sql.Coalesce, sql.Nullif, sql.Case, sql.If)


def parse_value(value: Any, field: ArrowField, schema: pa.Schema) -> Expression:
    """The new value of a column, over columns of the schema: a text is an expression, anything else the value itself.

    Raises InvalidFilterError, which names the invalid part, or the value that does not fit the column.
    """
    if isinstance(value, pc.Expression):
        return value
    if isinstance(value, str):
        try:
            return _Values(schema, field.name).value(parsed(value, "value"), field.type)
        except RecursionError:
            raise InvalidFilterError(f"the value of column {field.name!r} is nested too deeply") from None
    try:
        constant: Any = _scalar(value, field)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidFilterError(
            f"{value!r} is not a value of column {field.name!r}, which is of type {field.type}: {error}"
        ) from None
    return _pc.scalar(constant)


def parse_filter(text: str, schema: pa.Schema) -> pc.Expression:
    """The expression that is true for the rows to keep, over columns of the schema.

    Raises InvalidFilterError, which names the invalid part.
    """
    try:
        return _Conditions(schema, "filter").condition(parsed(text, "filter"))
    except RecursionError:
        raise InvalidFilterError("the filter is nested too deeply; use `in (...)` for long lists") from None


def _scalar(value: Any, field: ArrowField) -> Any:
    given: Any = value
    if isinstance(value, pa.Scalar):
        return cast_whole(pa.repeat(given, 1), field.type, f"the value of column {field.name!r}")[0]
    scalar: Any = pa.scalar(value, field.type)
    if _is_cut(value, scalar.as_py()):
        raise ValueError(f"it would become {scalar}; convert it before")
    return scalar


def _is_cut(value: Any, kept: Any) -> bool:
    """Whether Arrow has cut a part of a Python value off, or guessed a zone, both without an error."""
    if isinstance(value, Mapping):
        parts = dict(kept) if kept is not None else {}
        return any(name not in parts or _is_cut(part, parts[name]) for name, part in value.items())
    if isinstance(value, list | tuple):
        return kept is not None and any(map(_is_cut, value, kept))
    if isinstance(value, datetime) and isinstance(kept, date) and not isinstance(kept, datetime):
        return value.time() != time()
    if isinstance(value, datetime | time) and isinstance(kept, datetime | time):
        return value.microsecond != kept.microsecond or (value.tzinfo is None) != (kept.tzinfo is None)
    if isinstance(kept, float) and isinstance(value, int | float):
        return not keeps_digits(str(value), kept)
    return isinstance(kept, int) and not isinstance(value, bool) and bool(kept != value)


def evaluated(rows: pa.Table, values: Mapping[str, pc.Expression], schema: pa.Schema) -> pa.Table:
    """The values of the expressions for each row, cast to the columns of the schema. Raises InvalidRecordError."""
    names, columns = list(values), list[Any]()
    for name in names:
        field = schema.field(name)
        try:
            column: Any = _projected(rows, values[name])
            place = f"the new value of column {name!r}"
            columns.append(column if column.type == field.type else cast_whole(column, field.type, place))
        except InvalidRecordError:
            raise
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidRecordError(
                f"the new value of column {name!r}, which is of type {field.type}, cannot be computed: {error}"
            ) from None
    return pa.table(columns, schema=pa.schema([schema.field(name).with_nullable(True) for name in names]))


def is_true(rows: pa.Table, condition: pc.Expression) -> ArrowArray:
    """For each row, if the condition is true: null is not."""
    truth: ArrowArray = _pc.fill_null(_projected(rows, condition), False).combine_chunks()
    return truth


def _projected(rows: pa.Table, expression: pc.Expression) -> ArrowChunks:
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]))
    # On one thread, the rows keep their order.
    return acero.Declaration.from_sequence([source, project]).to_table(use_threads=False).column(0)


class _Values(Translation):
    """Translates the parts of one value of a column."""

    def __init__(self, schema: pa.Schema, column: str) -> None:
        super().__init__(schema)
        self._target = column

    def value(self, node: Node, wanted: ArrowType) -> Expression:
        """The value of a part for a row. A literal gets the type `wanted`."""
        match node:
            case sql.Paren():
                return self.value(node.this, wanted)
            case sql.Null():
                return _pc.scalar(pa.scalar(None, wanted))
            case sql.Column() | sql.Dot():
                return self._column(node)[0]
            case sql.Neg() if not isinstance(node.this, sql.Literal):
                return _pc.scalar(0) - self.value(node.this, wanted)
            case sql.DPipe() | sql.Concat():
                parts = [node.left, node.right] if isinstance(node, sql.DPipe) else node.expressions
                texts = [self.value(part, pa.string()) for part in parts]
                return _pc.binary_join_element_wise(*texts, "")
            case sql.Upper():
                return _pc.utf8_upper(self.value(node.this, pa.string()))
            case sql.Lower():
                return _pc.utf8_lower(self.value(node.this, pa.string()))
            case sql.Coalesce():
                return _pc.coalesce(*(self._chosen(part, wanted) for part in (node.this, *node.expressions)))
            case sql.Nullif():
                one = self.value(node.this, wanted)
                is_equal = _pc.coalesce(one == self.value(node.expression, wanted), _pc.scalar(False))
                return _pc.if_else(is_equal, _pc.scalar(None), one)
            case sql.Case() if node.this is None:
                return self._first_of(node.args["ifs"], node.args.get("default"), wanted)
            case sql.If():
                return self._first_of([node], node.args.get("false"), wanted)
            case _ if type(node) in _ARITHMETIC:
                return self._computed(node, wanted)
            case _ if isinstance(node, _CONDITIONS):
                return self.condition(node)
            case _:
                return self._constant(node, wanted)

    def _first_of(self, cases: Any, default: Node, wanted: ArrowType) -> Expression:
        last = _pc.scalar(pa.scalar(None, wanted)) if default is None else self._chosen(default, wanted)

        def otherwise(rest: Any, case: Node) -> Any:
            is_met = _pc.coalesce(self.condition(case.this), _pc.scalar(False))
            return _pc.if_else(is_met, self._chosen(case.args["true"], wanted), rest)

        expression: Expression = reduce(otherwise, reversed(cases), last)
        return expression

    def _computed(self, node: Node, wanted: ArrowType) -> Expression:
        """Arithmetic. A literal in it is exact beside a decimal, a fraction beside a fraction, and else what it is."""
        kinds = [self._column(part)[1] for part in node.find_all(sql.Column) if is_column(part)]
        exact = next((kind for kind in kinds if pa.types.is_decimal(kind)), None)
        one, other = (self._operand(part, exact, wanted) for part in (node.this, node.expression))
        if exact is None and (isinstance(node, sql.Div) or self._is_fraction(one) or self._is_fraction(other)):
            # A double holds them nearly. Arrow would compute `number * 1.5` with floats, which hold 24 bits.
            one, other = one.cast(pa.float64(), safe=False), other.cast(pa.float64(), safe=False)
        expression: Expression = _ARITHMETIC[type(node)](one, other)
        return expression

    def _chosen(self, node: Node, wanted: ArrowType) -> Expression:
        """One of several values. Beside a fraction, Arrow would take whole numbers for floats."""
        value = self.value(node, wanted)
        return value.cast(wanted) if pa.types.is_floating(wanted) and not self._is_fraction(value) else value

    def _is_fraction(self, value: Expression) -> bool:
        try:
            return pa.types.is_floating(_projected(self._schema.empty_table(), value).type)
        except pa.ArrowException:
            return False  # it is refused when it is computed

    def _operand(self, node: Node, exact: ArrowType | None, wanted: ArrowType) -> Expression:
        number = node.this if isinstance(node, sql.Neg) else node
        if not isinstance(number, sql.Literal) or number.is_string:
            return self.value(node, wanted)
        is_whole = number.name.isdecimal()
        return self._constant(node, exact or (pa.int64() if is_whole else pa.float64()))

    def _constant(self, node: Node, wanted: ArrowType) -> Expression:
        number = node.this if isinstance(node, sql.Neg) else node
        try:
            constant: Any = literal(node, wanted, self._target)
            self._refuse_unstated_zone(node, wanted)
            if pa.types.is_floating(wanted) and isinstance(number, sql.Literal) and not number.is_string:
                self._refuse_lost_digits(node, constant)
            return _pc.scalar(constant)
        except InvalidFilterError:
            raise InvalidFilterError(
                f"{text_of(node)!r} is not a value of {self._kind_of(wanted)}; a value is a column, a literal, arithmetic, "
                "text || text, case when, coalesce, nullif, upper or lower"
            ) from None

    def _kind_of(self, wanted: ArrowType) -> str:
        return f"the column {self._target!r}, which is of type {wanted}"

    def _refuse_unstated_zone(self, node: Node, wanted: ArrowType) -> None:
        text = node.find(sql.Literal)
        is_moment = pa.types.is_timestamp(wanted) and wanted.tz is not None
        if is_moment and text is not None and datetime.fromisoformat(text.name).tzinfo is None:
            raise InvalidRecordError(
                f"the value {text_of(node)} of column {self._target!r} has no zone, and the column is of moments: write it "
                f"with one, such as '{text.name}Z'"
            )

    def _refuse_lost_digits(self, node: Node, number: Any) -> None:
        if not keeps_digits(text_of(node), number.as_py()):
            raise InvalidRecordError(
                f"the value {text_of(node)} of column {self._target!r} has more digits than {number.type} holds, and would "
                f"become {number}; write fewer digits"
            )


class _Conditions(_Values):
    """Translates a condition, whose columns may also be computed."""

    def _kind_of(self, wanted: ArrowType) -> str:
        return f"type {wanted}"

    def is_value(self, node: Node) -> bool:
        if isinstance(node, sql.Paren):
            return self.is_value(node.this)
        return is_column(node) or (isinstance(node, _COMPUTED) and node.find(sql.Column) is not None)

    def _column(self, node: Node) -> tuple[pc.Expression, ArrowType]:
        if is_column(node) or not self.is_value(node):
            return super()._column(node)
        kinds = [self._column(part)[1] for part in node.find_all(sql.Column)]
        refusals: list[str] = []
        # The literals of a part have the type of one of its columns, or else none of them.
        for wanted in dict.fromkeys((*kinds, pa.string(), pa.int64(), pa.float64())):
            try:
                value = self.value(node, wanted)
                return value, _projected(self._schema.empty_table(), value).type
            except (InvalidFilterError, pa.ArrowException) as refusal:
                refusals.append(str(refusal))
        reason = _NO_KERNEL.sub(r"it needs numbers, or the same type on both sides, and has \1", refusals[0])
        raise InvalidFilterError(f"{text_of(node)!r} cannot be computed: {reason}")
