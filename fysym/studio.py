"""The studio: a page where one types an entropy and sees what follows. Start it with `fysym studio`.

This is a marimo app. Whatever is slow runs in a `Workbench`, a process of its own; its answers arrive through threads
that set a state, so that no cell waits.
"""

import marimo

app = marimo.App(width="medium", app_title="fysym studio")


@app.cell
def _():
    import html

    import marimo as mo

    from fysym.catalog import SEPARABLE as ENTRIES
    from fysym.workbench import Workbench

    return ENTRIES, Workbench, html, mo


@app.cell
def _(Workbench, mo):
    bench = Workbench()
    get_answer, set_answer = mo.state({"verdict": "checking", "message": ""})
    get_member, set_member = mo.state(None)
    get_triangle, set_triangle = mo.state(None)

    def work(lane, arguments, deliver):
        """Ask the workbench, and deliver the answer when it comes, unless a newer question was asked."""
        ticket = bench.ticket(lane)

        def wait():
            found = bench.run(lane, ticket, arguments)
            if found is not None:
                deliver({**found, "asked": arguments})

        mo.Thread(target=wait, daemon=True).start()

    def is_about(found, answer):
        """Whether an answer is about the entropy that is accepted now, and not about an earlier one."""
        now = answer.get("asked", {})
        same = all(found["asked"][part] == now.get(part) for part in ("entropy", "where"))
        return answer["verdict"] == "accepted" and same

    return get_answer, get_member, get_triangle, is_about, set_answer, set_member, set_triangle, work


@app.cell
def _(ENTRIES, mo):
    asked = mo.cli_args().get("entropy")
    catalog = mo.ui.dropdown(list(ENTRIES), value="gini" if asked is None else None, label="start from the catalog")
    return asked, catalog


@app.cell
def _(ENTRIES, asked, catalog, mo):
    entry = ENTRIES.get(catalog.value or str(asked))
    entropy = mo.ui.text(
        value=entry.expression if entry else str(asked or ""), debounce=250, full_width=True, label="h(t) ="
    )
    where = mo.ui.text(
        value=", ".join(entry.params.values()) if entry else "",
        placeholder="alpha > 1, 0 < k < 1",
        debounce=250,
        full_width=True,
        label="where",
    )
    reference = mo.md(f"<small>{entry.reference}</small>") if entry else mo.md("")
    return entropy, reference, where


@app.cell
def _(catalog, entropy, mo, reference, where):
    mo.vstack(
        [
            mo.md("# fysym studio\nWrite an entropy *h(t)* on (0, 1), strictly concave; see what follows from it."),
            mo.hstack([catalog, reference], justify="start", align="center"),
            entropy,
            where,
        ]
    )
    return


@app.cell
def _(entropy, set_answer, where, work):
    set_answer({"verdict": "checking", "message": ""})
    work("study", {"entropy": entropy.value, "where": where.value}, set_answer)
    return


@app.cell
def _(get_answer, html, mo):
    answer = get_answer()
    _kinds = {
        "accepted": ("success", "accepted"),
        "refuted": ("danger", "refuted"),
        "parse": ("danger", "not an expression"),
        "error": ("danger", "cannot be used"),
        "undecided": ("warn", "undecided"),
        "checking": ("neutral", "checking ..."),
    }
    _kind, _title = _kinds[answer["verdict"]]
    _words = f'<pre class="verdict" style="white-space:pre-wrap;margin:0">{html.escape(answer["message"])}</pre>'
    _shown = [mo.callout(mo.Html(f"<strong>{_title}</strong>{_words}"), kind=_kind)]
    if answer.get("picture"):
        _shown.append(mo.Html(answer["picture"]))
    mo.vstack(_shown)
    return (answer,)


@app.cell
def _(answer, mo):
    _given = answer.get("parameters", {}).items()
    sliders = mo.ui.dictionary(
        {
            name: mo.ui.slider(
                start=span["start"],
                stop=span["stop"],
                step=span["step"],
                value=min(span["stop"], max(span["start"], span["value"])),
                show_value=True,
                label=f"{name}, where {span['range']}",
            )
            for name, span in _given
        }
    )
    return (sliders,)


@app.cell
def _(mo):
    theta = mo.ui.array(
        [
            mo.ui.slider(start=-4, stop=4, step=0.05, value=value, show_value=True, label=f"score of class {k + 1}")
            for k, value in enumerate((0.8, 0.3, -0.4))
        ]
    )
    return (theta,)


@app.cell
def _(answer, set_member, sliders, work):
    if answer["verdict"] == "accepted":
        work("member", {**answer["asked"], "values": dict(sliders.value)}, set_member)
    return


@app.cell
def _(answer, set_triangle, sliders, theta, work):
    if answer["verdict"] == "accepted":
        _question = {**answer["asked"], "values": dict(sliders.value), "theta": list(theta.value)}
        work("triangle", _question, set_triangle)
    return


@app.cell
def _(answer, get_member, html, is_about, mo, sliders):
    member = get_member()
    if member is not None and not is_about(member, answer):
        member = None
    _rows = [sliders[name] for name in sliders.value]
    if member is not None and member["verdict"] == "accepted":
        _words = f"margin <strong>{html.escape(member['margin'])}</strong>, sparsity {member['sparsity']}"
        _rows.append(mo.Html(f'<p class="summary">{_words}</p>'))
        _rows.append(mo.Html(member["panels"]))
    elif member is not None:
        _rows.append(mo.callout(mo.plain_text(member["message"]), kind="warn"))
    mo.vstack(_rows) if _rows else None
    return (member,)


@app.cell
def _(answer, get_triangle, is_about, member, mo, theta):
    _found = get_triangle()
    if member is not None and _found is not None and _found["verdict"] == "accepted" and is_about(_found, answer):
        _bars = "".join(
            f'<tr><td>class {k + 1}&nbsp;</td><td style="width:12em"><div style="background:#0072B2;height:1em;'
            f'width:{100 * p:.2f}%"></div></td><td class="probability">&nbsp;{p:.4f}</td></tr>'
            for k, p in enumerate(_found["p"])
        )
        _left = mo.vstack([mo.md("**Three classes**"), *theta, mo.Html(f"<table>{_bars}</table>")])
        _shown = mo.hstack([_left, mo.Html(_found["picture"])], widths=[1, 1.2], align="center")
    else:
        _shown = None
    _shown if answer["verdict"] == "accepted" else None
    return


@app.cell
def _(member, mo):
    if member is not None and member["verdict"] == "accepted":
        _code = {
            "NumPy": mo.ui.code_editor(member["sources"]["numpy"], language="python", disabled=True, max_height=420),
            "C": mo.ui.code_editor(member["sources"]["c"], language="cpp", disabled=True, max_height=420),
        }
        _shown = mo.ui.tabs({"facts": mo.Html(member["facts"]), **{f"code: {k}": v for k, v in _code.items()}})
    else:
        _shown = None
    _shown
    return


if __name__ == "__main__":
    app.run()
