"""What the declaration of a result's field says: its type, its unit, when it is absent, where it is shown."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints


class Unit(NamedTuple):
    """The unit of a number, and how a number with it is written."""

    name: str
    format: str


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a result. Exports have all fields that are stored; other reports go by what is said here."""

    unit: Unit | None = None
    label: str = ""
    """Its name on the page and in the notebook; by default that in the files."""
    absent: str | None = None
    """What these show in place of the default. None: reports leave a field out that has its default."""
    unmeasured: Callable[[Any], bool] | None = None
    """Of a result: whether the field has no value, unless it is a number other than 0."""
    page: bool = True
    notebook: bool = True
    junit: bool = True
    """A property of the testcase. An object has one for each of its single values."""
    column: str = ""
    """The heading of its mean in the tables of terminal and page; the JUnit suite has it by name."""
    total: str = ""
    """The word before its sum in the terminal's line of totals; the JUnit suite has it by name. It takes the
    place of a column's mean there, so a field has one of both."""

    name: str = ""
    kind: Any = None
    """The type of its values: str, int, float, bool, list or dict."""
    is_optional: bool = False
    """Whether the value can be None."""
    default: Any = None
    """MISSING for a field that every result has."""
    is_stored: bool = False
    """Whether it is in the files of a run. The others are computed from those."""

    def is_known(self, result: Any) -> bool:
        """Whether the field has a value; exports have null for the others."""
        value = getattr(result, self.name)
        is_counted = value != 0 and self.kind in (int, float)
        return value != "" and (is_counted or self.unmeasured is None or not self.unmeasured(result))

    def number_of(self, result: Any) -> Any:
        """The value of a number, with 0 for no and 1 for yes; None if there is none."""
        value = getattr(result, self.name)
        return int(value) if isinstance(value, bool) else value


def declared_fields(kind: type) -> list[Field]:
    """The fields of a dataclass, and its properties that are declared in the same way."""
    hints = get_type_hints(kind, include_extras=True)
    properties = {name: one.fget for name, one in vars(kind).items() if isinstance(one, property)}
    returned = {name: get_type_hints(one, include_extras=True)["return"] for name, one in properties.items()}
    return [
        *(field_of(one.name, hints[one.name], default_of(one), is_stored=True) for one in fields(kind)),
        *(field_of(name, hint) for name, hint in returned.items() if get_origin(hint) is Annotated),
    ]


def default_of(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def field_of(name: str, hint: Any, default: Any = None, *, is_stored: bool = False) -> Field:
    said = next((one for one in get_args(hint) if isinstance(one, Field)), Field())
    type = hint.__origin__ if get_origin(hint) is Annotated else hint
    is_optional = isinstance(type, UnionType)
    kind = get_args(type)[0] if is_optional else type
    return replace(
        said,
        name=name,
        label=said.label or name.replace("_", " "),
        kind=get_origin(kind) or kind,
        is_optional=is_optional,
        default=default,
        is_stored=is_stored,
    )
