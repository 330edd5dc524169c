"""How messages become bounded outputs and a text."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_super.kernel.output import BINARY, HEAD, TAIL, WHOLE, CellOutput, readable

NAMES = st.sampled_from(["stdout", "stderr"])


def text_of(output: CellOutput) -> str:
    return readable(output.outputs())


def show(output: CellOutput, text: str, name: str = "stdout") -> None:
    output.add("stream", {"name": name, "text": text})


def display(output: CellOutput, kind: str = "display_data", mark: str = "", **data: Any) -> str:
    content = {"data": {name.replace("_", "/"): value for name, value in data.items()}, "metadata": {}}
    return output.add(kind, {**content, "transient": {"display_id": mark} if mark else {}})


def test_streams_of_one_name_are_merged() -> None:
    output = CellOutput()
    for name, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")):
        show(output, text, name)
    assert [(entry["name"], entry["text"]) for entry in output.outputs()] == [
        ("stdout", "ab"),
        ("stderr", "c"),
        ("stdout", "d"),
    ]


@given(st.lists(st.tuples(NAMES, st.integers(1, HEAD)), max_size=12))
def test_head_and_tail_are_kept_and_the_rest_is_counted(parts: list[tuple[str, int]]) -> None:
    output, whole = CellOutput(), ""
    for number, (name, size) in enumerate(parts):
        text = (f"{number:02}" * size)[:size]
        whole += text
        show(output, text, name)
    kept = "".join(entry["text"] for entry in output.outputs())
    note = f"\n[... {output.omitted} characters left out ...]\n"
    if not output.omitted:
        assert kept == whole
        return
    head, tail = kept.split(note)
    assert len(head) + output.omitted + len(tail) == len(whole)
    assert len(head) > 0.9 * HEAD
    assert len(tail) > 0.9 * TAIL
    assert whole.startswith(head)
    assert whole.endswith(tail)


def test_many_small_pieces_fill_the_tail_too() -> None:
    output = CellOutput()
    for number in range(100_000):
        show(output, f"{number}\n")
    kept = text_of(output)
    assert kept.startswith("0\n1\n2\n")
    assert kept.endswith("99998\n99999\n")
    assert 0.9 * (HEAD + TAIL) < len(kept) < 1.1 * (HEAD + TAIL)


def test_an_error_is_kept_whole_after_a_flood_and_shortened_if_it_is_endless() -> None:
    output = CellOutput()
    show(output, "x" * (HEAD + TAIL - 10))
    output.add("error", {"ename": "E", "evalue": "v", "traceback": ["line"] * 100})
    assert output.outputs()[-1]["traceback"] == ["line"] * 100
    endless = CellOutput()
    endless.add("error", {"ename": "E", "evalue": "v", "traceback": ["t" * 10**6]})
    assert len(text_of(endless)) < TAIL + 100
    assert endless.omitted > 0


def test_pictures_are_kept_within_bounds() -> None:
    output = CellOutput()
    for _ in range(3):
        display(output, text_plain="<Figure>", image_png="A" * (BINARY // 2 - 100))
    assert ["image/png" in entry["data"] for entry in output.outputs()] == [True, True, False]
    assert text_of(output) == "<Figure>\n" * 3
    assert display(CellOutput(), image_png="A") == "[image/png]"


def test_an_update_replaces_the_display_it_names_or_is_shown_as_new() -> None:
    output = CellOutput()
    display(output, text_plain="0%", mark="bar")
    show(output, "between\n")
    display(output, "update_display_data", text_plain="100%", mark="bar")
    display(output, "update_display_data", text_plain="50%", mark="of an earlier result")
    assert text_of(output) == "100%\nbetween\n50%\n"


def test_updates_of_many_displays_are_bounded() -> None:
    output = CellOutput()
    for kind, text in (("display_data", "x"), ("update_display_data", "y" * (WHOLE - 1))):
        for number in range(3500):
            display(output, kind, text_plain=text, mark=f"{number}")
    assert len(text_of(output)) < 2 * (HEAD + TAIL)
    assert text_of(output).endswith("y\n")


def test_an_update_in_a_full_head_may_be_longer() -> None:
    output = CellOutput()
    display(output, text_plain="0%", mark="bar")
    show(output, "x" * (HEAD + 2 * TAIL))
    display(output, "update_display_data", text_plain="100% [00:10<00:00]", mark="bar")
    assert text_of(output).startswith("100% [00:10<00:00]\nxx")


def test_an_update_of_a_display_that_was_given_up_is_shown_as_new() -> None:
    output = CellOutput()
    show(output, "x" * HEAD)
    display(output, text_plain="0%", mark="bar")
    show(output, "x" * 2 * TAIL)
    display(output, "update_display_data", text_plain="100%", mark="bar")
    assert text_of(output).endswith("x\n100%\n")
    assert "0%\nx" not in text_of(output)


def test_a_picture_may_be_updated_for_ever() -> None:
    output = CellOutput()
    display(output, image_png="A" * (BINARY // 2), mark="plot")
    for letter in "BCD":
        display(output, "update_display_data", image_png=letter * (BINARY // 2), mark="plot")
    assert output.outputs()[0]["data"]["image/png"].startswith("D")


def test_types_count_as_much_as_what_is_of_them() -> None:
    output = CellOutput()
    for number in range(10):
        display(output, **{f"{number}" * (BINARY // 4): ""})
    assert sum(len(str(entry)) for entry in output.outputs()) < BINARY + HEAD


def test_clearing_takes_effect_at_once_or_with_the_next_output() -> None:
    output = CellOutput()
    show(output, "old")
    output.add("clear_output", {"wait": True})
    assert text_of(output) == "old"
    show(output, "new")
    assert text_of(output) == "new"
    output.add("clear_output", {"wait": False})
    assert text_of(output) == ""


def test_text_is_what_a_terminal_would_show_with_displays_on_their_own_lines() -> None:
    output = CellOutput()
    raw = "1%\r2%\r\x1b[31m3%\x1b[0m\r\nno newline"
    show(output, raw)
    for text in ("one", "two"):
        display(output, text_plain=text)
    assert text_of(output) == "3%\nno newline\none\ntwo\n"
    assert output.outputs()[0]["text"] == raw
