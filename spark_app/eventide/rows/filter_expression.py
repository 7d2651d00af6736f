"""Turns a filter, a condition as in SQL's WHERE, into an Arrow expression.

    condition  := condition and|or condition | not condition | (condition) | predicate
    predicate  := value (= | <> | != | < | <= | > | >=) value
                | value [not] between value and value | column [not] in (literal, ...)
                | column [not] like 'pattern'         | column is [not] null | boolean column | isnan(column)
    value      := column | literal                      at least one of a predicate's values is a column
    column     := name, `any name`, struct.field, lower(column), upper(column), or what an update computes of these
                  (rows/value_expression.py)
    literal    := 1, 1.5, 'text', 'it''s', true, date '2026-11-21', timestamp '2026-11-21T00:00Z'

A literal takes the type of the column that it is compared with, so a text is enough for a date or timestamp: ISO-8601, in
UTC if it has no zone. As in SQL, a comparison with null is neither true nor false, and such rows are left out.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal
from functools import reduce
from math import isinf, isnan
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import Dialect, Token, TokenType
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError, TokenError

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowScalar, ArrowType
from eventide_adapters.format.encoding.columns.exact_cast import exact_cast
from eventide_core.errors import InvalidFilterError

_DIALECT = "spark"  # names in backticks, as in Spark, which reads most of these tables

Node: TypeAlias = Any  # a node of the parse tree: the parser's versions have different names for its class
Comparison: TypeAlias = Callable[[pc.Expression, Any], pc.Expression]

_COMPARISONS: dict[Node, Comparison] = {
    sql.EQ: eq,
    sql.NEQ: ne,
    sql.LT: lt,
    sql.LTE: le,
    sql.GT: gt,
    sql.GTE: ge,
}

_CASES: dict[Node, Callable[[pc.Expression], pc.Expression]] = {sql.Lower: pc.utf8_lower, sql.Upper: pc.utf8_upper}
_KINDS = {"filter": "condition; write one such as amount > 10", "value": "expression; write one such as amount * 2"}
_KNOWN_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate", "table", "db", "catalog"}
_SWAPPED: dict[Comparison, Comparison] = {eq: eq, ne: ne, lt: gt, le: ge, gt: lt, ge: le}


def parsed(text: str, what: str) -> Node:
    """The parse tree of one expression. Raises InvalidFilterError."""
    try:
        dialect = Dialect.get_or_raise(_DIALECT)
        statements = dialect.parser().parse(_with_doubled_quotes(dialect.tokenize(text), text), text)
    except SqlglotError as error:
        raise InvalidFilterError(f"{what} {text!r} cannot be read{_place(error)}") from None
    if len(statements) != 1 or statements[0] is None:
        raise InvalidFilterError(f"{what} {text!r} is not one {_KINDS[what]}")
    return statements[0]


def _with_doubled_quotes(tokens: Sequence[Token], text: str) -> list[Token]:
    """Joins the two texts that the dialect reads where a quote is doubled: it is one quote, as in SQL and Spark 4."""
    joined_tokens: list[Token] = []
    for token in tokens:
        last = joined_tokens[-1] if joined_tokens else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == text[token.start]
        ):
            joined = f"{last.text}{text[token.start]}{token.text}"
            joined_tokens[-1] = Token(TokenType.STRING, joined, last.line, last.col, last.start, token.end)
        else:
            joined_tokens.append(token)
    return joined_tokens


def _unsupported(node: Node) -> InvalidFilterError:
    return InvalidFilterError(
        f"{text_of(node)!r} is not supported in a filter; supported are comparisons, in, between, like, is "
        "null, isnan, and, or, not, and what an update computes"
    )


def _place(error: SqlglotError) -> str:
    for problem in getattr(error, "errors", ()):
        return f" at {problem['highlight']!r} (character {problem['col']})"
    return (
        ": is a quote or a comment not closed?" if isinstance(error, TokenError) else f": {str(error).splitlines()[0]}"
    )


class Translation:
    """Translates the parts of one filter into Arrow expressions, with the types of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def condition(self, node: Node) -> pc.Expression:
        """The value of a part for a row: true, false or null."""
        # The parser's nodes have arguments for extras of every dialect. Ignoring one would give a wrong result.
        if any(value and name not in _KNOWN_ARGUMENTS for name, value in node.args.items()):
            raise _unsupported(node)
        expression = self._positive(node)
        return ~expression if node.args.get("negate") else expression

    def _positive(self, node: Node) -> pc.Expression:
        match node:
            case sql.Paren():
                return self.condition(node.this)
            case sql.Not():
                return ~self.condition(node.this)
            case sql.And() | sql.Or():
                parts = [self.condition(part) for part in node.flatten()]
                return reduce(and_ if isinstance(node, sql.And) else or_, parts)
            case sql.Is() if isinstance(node.expression, sql.Null):
                return self._column(node.this)[0].is_null()
            case sql.IsNan():
                column, kind = self._column(node.this)
                if not pa.types.is_floating(kind):
                    raise InvalidFilterError(f"{text_of(node)!r} is for fractions, and the column is of type {kind}")
                is_nan: pc.Expression = pc.if_else(column.is_valid(), column.is_nan(), pa.scalar(value=False))
                return is_nan
            case sql.Between():
                return self._compare(ge, node.this, node.args["low"], node) & self._compare(
                    le, node.this, node.args["high"], node
                )
            case sql.In() if node.expressions:
                return self._any_of(node)
            case sql.Like() if isinstance(node.expression, sql.Literal) and node.expression.is_string:
                return self._like(node)
            case sql.Column() | sql.Dot():
                column, kind = self._column(node)
                if not pa.types.is_boolean(kind):
                    raise InvalidFilterError(f"{text_of(node)!r} is not a condition: the column is of type {kind}")
                return column
            case _ if type(node) in _COMPARISONS:
                return self._compare(_COMPARISONS[type(node)], node.this, node.expression, node)
            case _:
                raise _unsupported(node)

    def _any_of(self, node: sql.In) -> pc.Expression:
        column, kind = self._column(node.this)
        values = [literal(item, kind, text_of(node.this)) for item in node.expressions]
        # In SQL, null in a set is null; Arrow's set lookup returns false.
        unknown = pa.scalar(None, pa.bool_())
        is_member: pc.Expression = pc.if_else(column.is_valid(), _is_in(column, kind, values), unknown)
        return is_member

    def _like(self, node: sql.Like) -> pc.Expression:
        column, kind = self._column(node.this)
        if not pa.types.is_string(kind):
            raise InvalidFilterError(f"{text_of(node)!r}: like is for text, and the column is of type {kind}")
        return pc.match_like(column, node.expression.this)

    def _compare(self, operator: Comparison, left: Node, right: Node, whole: Node) -> pc.Expression:
        if self.is_value(left) and self.is_value(right):
            (one, one_kind), (other, other_kind) = self._column(left), self._column(right)
            if one_kind != other_kind and not (_is_number(one_kind) and _is_number(other_kind)):
                raise InvalidFilterError(
                    f"{text_of(whole)!r} compares a column of type {one_kind} with one of {other_kind}"
                )
            return operator(*_of_one_kind((one, one_kind), (other, other_kind)))
        if self.is_value(left):
            column, kind = self._column(left)
            return operator(column, literal(right, kind, text_of(left)))
        if self.is_value(right):
            column, kind = self._column(right)
            return _SWAPPED[operator](column, literal(left, kind, text_of(right)))
        raise InvalidFilterError(f"{text_of(whole)!r} compares no column")

    def is_value(self, node: Node) -> bool:
        """Whether the part is a column, or computed of columns, so that the literals beside it have its type."""
        return is_column(node)

    def _column(self, node: Node) -> tuple[pc.Expression, ArrowType]:
        """A column, or a field inside one, in lower or upper case if asked, and its type."""
        if type(node) in _CASES:
            column, kind = self._column(node.this)
            if not pa.types.is_string(kind):
                raise InvalidFilterError(f"{text_of(node)!r} is for text, and the column is of type {kind}")
            return _CASES[type(node)](column), kind
        if not isinstance(node, sql.Column | sql.Dot):
            raise InvalidFilterError(f"{text_of(node)!r} is used in place of a column")
        fields, kind = list(self._schema), None
        names = [part.name for part in node.parts]
        for name in names:
            child = next((field for field in fields if field.name == name), None)
            if child is None:
                known = ", ".join(field.name for field in fields) or f"nothing: it is of type {kind}"
                raise InvalidFilterError(f"{text_of(node)!r}: there is no column {name!r}; there is {known}")
            kind = child.type
            fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        return pc.field(*names), kind


def _of_one_kind(*sides: tuple[pc.Expression, ArrowType]) -> Sequence[pc.Expression]:
    """The columns, as doubles if there are fractions among them: Arrow refuses whole numbers that a fraction can't hold."""
    if not any(pa.types.is_floating(kind) for _, kind in sides):
        return [column for column, _ in sides]
    return [column.cast(pa.float64(), safe=False) if pa.types.is_integer(kind) else column for column, kind in sides]


def _is_in(column: pc.Expression, kind: ArrowType, values: Sequence[ArrowScalar]) -> pc.Expression:
    kinds = {value.type for value in values}
    if len(kinds) > 1 or any(
        pa.types.is_decimal(one) for one in kinds if one != kind
    ):  # such as an integer in (1, 2.5)
        return reduce(or_, (column == value for value in values))
    members = [value.as_py() for value in values]
    if any(member == 0.0 for member in members if isinstance(member, float)):
        members += [0.0, -0.0]  # equal in SQL; Arrow's set lookup distinguishes them
    return column.isin(pa.array(members, type=kinds.pop()))


def is_column(node: Node) -> bool:
    return isinstance(node, sql.Column | sql.Dot | sql.Lower | sql.Upper)


def _is_number(kind: ArrowType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def literal(node: Node, kind: ArrowType, column: str) -> ArrowScalar:
    """The literal as a value of the column's type."""
    match node:
        case sql.Paren():
            return literal(node.this, kind, column)
        case sql.Cast() | sql.TsOrDsToDate() if isinstance(node.this, sql.Literal):
            return literal(node.this, kind, column)  # date '...' and timestamp '...': the column's type decides
        case sql.Null():
            raise InvalidFilterError(f"null equals nothing: use {column} is null, or is not null")
        case sql.Boolean() if pa.types.is_boolean(kind):
            return pa.scalar(bool(node.this))
        case sql.Neg() if isinstance(node.this, sql.Literal) and not node.this.is_string and _is_number(kind):
            return _number(f"-{node.this.name}", kind, column)
        case sql.Literal() if not node.is_string and _is_number(kind):
            return _number(node.name, kind, column)
        case sql.Literal() if node.is_string:
            return _of_text(node.name, kind, column)
        case _:
            raise InvalidFilterError(f"{text_of(node)!r} cannot be compared with {column}, which is of type {kind}")


def _number(text: str, kind: ArrowType, column: str) -> ArrowScalar:
    value = Decimal(text)
    try:
        if pa.types.is_floating(kind):
            number = pa.scalar(float(value), kind)
            if isinf(number.as_py()):
                raise OverflowError
            return number
        if pa.types.is_decimal(kind):
            return pa.scalar(value)
        # Arrow chooses the type, not the column, and widens it in a comparison: 5000000000 compares with an int.
        below = int(value.to_integral_value(ROUND_FLOOR))
        whole: ArrowScalar = pa.scalar(below)
        # Whole numbers lie on the same sides of each fraction between two of them. Arrow would compare floats, and refuses
        # greater whole numbers than these can hold.
        return whole if value == below else pa.scalar(below + Decimal("0.5"))
    except (pa.ArrowInvalid, OverflowError):
        raise InvalidFilterError(f"{text} is too large to be compared with {column}, which is of type {kind}") from None


def _of_text(text: str, kind: ArrowType, column: str) -> ArrowScalar:
    try:
        if pa.types.is_timestamp(kind):
            return _moment(text, kind)
        value: ArrowScalar = exact_cast(pa.array([text]), kind)[0]
    except (ValueError, pa.ArrowNotImplementedError):
        raise InvalidFilterError(f"{text!r} is not a value of {column}, which is of type {kind}") from None
    if pa.types.is_floating(kind) and isnan(value.as_py()):
        raise InvalidFilterError(f"{text} equals nothing: use isnan({column})")
    return value


def _moment(text: str, kind: ArrowType) -> ArrowScalar:
    """A text in ISO-8601 as a moment; a column of local times takes no zone."""
    moment = datetime.fromisoformat(text)
    if kind.tz is None and moment.tzinfo is not None:
        raise ValueError(text)
    if kind.tz is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    value: ArrowScalar = pa.scalar(moment, pa.timestamp("us", kind.tz))
    return value


def text_of(node: Node) -> str:
    return str(node.sql(dialect=_DIALECT))
