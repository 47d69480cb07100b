"""HTML of explanations. It shows what the text of `prsl explain` shows: the labels, categories and rules that matter."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ._html import bar, page, table

if TYPE_CHECKING:
    from ._explanation import Explanation

#: Minimum change of a probability that is shown, as in the text.
_MOVED = 0.0005
#: Minimum change of a probability that is marked with an arrow.
_ARROW = 0.05
#: Maximum number of labels, of rules, of labels per rule, and of categories per label.
_MAX_LABELS, _MAX_RULES, _MAX_INFLUENCES, _MAX_CATEGORIES = 10, 6, 3, 4
#: Maximum number of unchanged labels with lines of their own.
_MAX_UNCHANGED = 4
#: Maximum number of names in a list of labels that are not shown.
_NAMES = 8

Part = dict[str, Any]


def explanation_page(explanation: Explanation) -> str:
    """Beliefs as given, calibrated and after the rules; the most influential rules; the most probable assignments."""
    head = []
    if explanation.data.get("approximate"):
        head.append("<p>Approximate: the probabilities with and without each rule are by loopy propagation.</p>")
    if not explanation.possible:
        head.append(_impossible(explanation))
    left = _labels(explanation) + _most_probable(explanation)
    right = _rules(explanation) if explanation.possible else ""
    return page(*head, f'<div class="beside"><div>{left}</div><div>{right}</div></div>')


def probability(value: float | None) -> str:
    """Three decimals. Values that they would hide are `0`, `2e-7`, `>0.999` or `1`."""
    if value is None:
        return ""
    if value in (0.0, 1.0):
        return f"{value:.0f}"
    if value < _MOVED:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return "&gt;0.999" if value >= 1.0 - _MOVED else f"{value:.3f}"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


# Labels


def _change(label: Part) -> float:
    """The largest change of a label's categories; 1 without a posterior."""
    categories = label["categories"]
    if any(category["after"] is None for category in categories):
        return 1.0
    return max((abs(category["after"] - category["before"]) for category in categories), default=0.0)


def _is_yes_no(label: Part) -> bool:
    return [category["name"] for category in label["categories"]] == ["yes", "no"]


def _is_calibrated(label: Part) -> bool:
    """Whether a calibrator changed the belief that was given."""
    return any(category.get("given") not in (None, category["before"]) for category in label["categories"])


def _labels(explanation: Explanation) -> str:
    labels = explanation.labels
    ranked = sorted(labels, key=lambda label: -_change(label))
    moving = [label for label in ranked if _change(label) >= _MOVED]
    still = [label for label in ranked if _change(label) < _MOVED]
    most = len(moving) if len(labels) <= _MAX_LABELS + _MAX_UNCHANGED else _MAX_LABELS
    left_out = [still] if len(still) > _MAX_UNCHANGED else []
    hidden = {id(label) for label in [*moving[most:], *(left_out[0] if left_out else [])]}
    shown = [label for label in labels if id(label) not in hidden]
    has_given = any(_is_calibrated(label) for label in shown)
    lines = [line for label in shown for line in _lines(label, has_given)]
    head = ["label", "category", *(["as given", "calibrated"] if has_given else ["belief"]), "posterior (mark: before)", ""]
    notes = []
    if moving[most:]:
        largest = _change(moving[most])
        notes.append(_named(moving[most:], f"moved by {largest:.3f} or less"))
    notes += [_named(group, "did not move") for group in left_out]
    return table(head, lines) + "".join(f'<p class="faint">{note}</p>' for note in notes)


def _named(labels: list[Part], what: str) -> str:
    names = ", ".join(escape(label["name"]) for label in labels[:_NAMES])
    more = f", and {len(labels) - _NAMES} more" if len(labels) > _NAMES else ""
    return f"{_counted(len(labels), 'label')} {what}: {names}{more}"


def _lines(label: Part, has_given: bool) -> list[list[str]]:
    """The lines of a label: yes of a yes/no label, otherwise its most probable categories and the rest as one."""
    categories = label["categories"]
    if _is_yes_no(label):
        shown = categories[:1]
    elif len(categories) <= _MAX_CATEGORIES + 1:
        shown = categories
    else:
        largest = sorted(categories, key=lambda it: -max(it["before"], it["after"] or 0.0))[:_MAX_CATEGORIES]
        shown = [category for category in categories if any(category is it for it in largest)]
    lines = [
        [_title(label) if at == 0 else "", escape(category["name"]), *_numbers(category, label, has_given)]
        for at, category in enumerate(shown)
    ]
    n_left = len(categories) - len(shown)
    if n_left and not _is_yes_no(label):
        rest = {name: _rest(shown, name) for name in ("given", "before", "after")}
        lines.append(["", f'<span class="faint">{n_left} others</span>', *_numbers(rest, label, has_given)])
    return lines


def _rest(shown: list[Part], name: str) -> float | None:
    """The probability of all other categories."""
    values = [category.get(name) for category in shown]
    return None if None in values else max(0.0, 1.0 - sum(value for value in values if value is not None))


def _title(label: Part) -> str:
    source = label["classifier"]
    if source is None:
        return f'{escape(label["name"])} <span class="faint">(latent)</span>'
    own = "" if source == label["name"] else f' <span class="faint">(from {escape(source)})</span>'
    return escape(label["name"]) + own


def _numbers(category: Part, label: Part, has_given: bool) -> list[str]:
    """Belief as given, calibrated belief, posterior, and the change by the rules."""
    before, after = category["before"], category["after"]
    given = [probability(category.get("given")) if _is_calibrated(label) else ""] if has_given else []
    change = 0.0 if after is None else after - before
    arrow = f"{'↑' if change > 0 else '↓'} {change:+.3f}" if abs(change) > _ARROW else ""
    kind = "down" if change < -_ARROW else ""
    posterior = "" if after is None else bar(after, probability(after), kind, mark=before)
    return [*given, probability(before), posterior, f'<span class="nowrap">{arrow}</span>']


# Rules


def _rules(explanation: Explanation) -> str:
    ranked = sorted(explanation.rules, key=lambda rule: -(rule["largest_change"] or 0.0))
    moving = [rule for rule in ranked if rule["conflict"] or (rule["largest_change"] or 0.0) >= _MOVED]
    shown = [rule for at, rule in enumerate(moving) if at < _MAX_RULES or rule["conflict"]]
    lines = [((rule["largest_change"] or 0.0), _rule(rule)) for rule in shown]
    typical = explanation.typical
    if typical is not None:
        statement = f"{_counted(typical['n'], 'typical combination')}, all together"
        lines.append((typical["largest_change"] or 0.0, ["", statement + _moves(typical["influences"])]))
        lines.sort(key=lambda line: -line[0])
    if not lines and not explanation.rules:
        return '<p class="faint">There are no rules.</p>'
    notes = []
    left_out = [rule for rule in moving if not any(rule is it for it in shown)]
    if left_out:
        largest = left_out[0]["largest_change"] or 0.0
        notes.append(f"{_counted(len(left_out), 'more rule')} moved something by {largest:.3f} or less")
    n_still = len(ranked) - len(moving)
    if n_still:
        notes.append(f"{_counted(n_still, 'rule')} moved nothing")
    found = table(["", "rules, the most influential first"], [line for _, line in lines]) if lines else ""
    return found + "".join(f'<p class="faint">{note}</p>' for note in notes)


def _statement(rule: Part) -> str:
    """The rule as a sentence; its formula appears if the pointer is on it."""
    name = f"<b>{escape(rule['name'])}</b>: " if rule["name"] else ""
    return f'<span title="{escape(rule["text"], quote=True)}">{name}{escape(rule["sentence"])}</span>'


def _rule(rule: Part) -> list[str]:
    agreement = probability(rule["agreement"])
    if rule["conflict"]:
        note = f' <b class="conflict">conflict</b>: everything else says otherwise (agrees {agreement})'
    elif rule["body_probability"] is None:
        note = ' <span class="faint">a probability of 0.5 says nothing</span>'
    else:
        note = f' <span class="faint nowrap">(agrees {agreement})</span>'
    return [str(rule["number"]), _statement(rule) + note + _moves(rule["influences"])]


def _moves(influences: list[Part]) -> str:
    """The labels that changed most, with the contrast: `wet=yes: 0.744 instead of 0.300`."""
    changes = []
    for influence in influences:
        known = [change for change in influence["categories"] if change["change"] is not None]
        # Of equal changes, an increase comes first.
        largest = max(known, key=lambda it: (round(abs(it["change"]), 9), it["change"] > 0), default=None)
        if largest is not None and abs(largest["change"]) >= _MOVED:
            changes.append((abs(largest["change"]), influence, largest))
    changes.sort(key=lambda it: -it[0])
    lines = []
    for _, influence, change in changes[:_MAX_INFLUENCES]:
        atom = f"{escape(influence['label'])}={escape(change['category'])}"
        indirectly = "" if influence["mentioned"] else ' <span class="faint">(by way of other rules)</span>'
        contrast = f"{probability(change['with'])} instead of {probability(change['without'])}"
        lines.append(f'<span class="nowrap">{atom}: {contrast}{indirectly}</span>')
    if len(changes) > _MAX_INFLUENCES:
        more = _counted(len(changes) - _MAX_INFLUENCES, "more label")
        lines.append(f'<span class="faint nowrap">and {more}</span>')
    return f'<div class="moves">moved {"; ".join(lines) or "nothing"}</div>'


def _impossible(explanation: Explanation) -> str:
    rules = explanation.conflicts
    if not rules:
        return "<p><b>Nothing is possible:</b> the evidence excludes itself.</p>"
    who = "this rule excludes" if len(rules) == 1 else "these rules together exclude"
    lines = [
        [
            str(rule["number"]),
            _statement(rule),
            "without it something would be possible"
            if rule["possible_without"]
            else "without it still nothing would be possible: other rules conflict too",
        ]
        for rule in rules
    ]
    head = f"<p><b>Nothing is possible:</b> {who} everything that the evidence allows.</p>"
    return head + table(["", "rule", ""], lines)


# Assignments


def _most_probable(explanation: Explanation) -> str:
    refused = explanation.data.get("joint_refused")
    if refused:
        return f'<p class="faint">Most probable assignment: not affordable: {escape(refused)}</p>'
    best, runner_up = explanation.best, explanation.runner_up
    if best is None:
        return ""
    lines = [[_percent(best), f"{_choices(explanation, best)}{_is_typical(best)}"]]
    if not best["proven"]:
        lines.append(["", "the search was given up: something else may be more probable"])
    elif runner_up is None:
        lines.append(["", "nothing else is possible"])
    else:
        both = zip(best["choices"], runner_up["choices"], strict=True)
        differences = ", ".join(_atom(other) for own, other in both if own != other)
        rank = "equally probable: it differs in" if best["log_weight"] - runner_up["log_weight"] < 1e-9 else "the runner-up differs in"
        lines.append([_percent(runner_up), f"{rank} {differences}{_is_typical(runner_up)}"])
    return table(["most probable", ""], lines)


def _percent(joint: Part) -> str:
    value = joint["probability"]
    if value is None:
        return ""
    if value in (0.0, 1.0):
        return f"{100 * value:.0f} %"
    if value < _MOVED:
        return f"{100 * value:.0e} %"
    return "&gt;99.9 %" if value >= 1.0 - _MOVED else f"{100 * value:.1f} %"


def _atom(choice: Part) -> str:
    return f"{escape(choice['label'])}={escape(choice['category'])}"


def _choices(explanation: Explanation, joint: Part) -> str:
    """The categories of an assignment. If many yes/no labels are no, they are only counted."""
    both = list(zip(explanation.labels, joint["choices"], strict=True))
    no = [choice for label, choice in both if _is_yes_no(label) and choice["category"] == "no"]
    if len(no) <= _MAX_UNCHANGED:
        return ", ".join(_atom(choice) for _, choice in both) or "(no labels)"
    rest = [_atom(choice) for _, choice in both if not any(choice is it for it in no)]
    return ", ".join([*rest, f"and no for the other {len(no)} labels"]) if rest else f"all {len(no)} labels are no"


def _is_typical(joint: Part) -> str:
    weight = joint.get("typical")
    return "" if weight is None else f' <span class="faint">(typical, weight {weight:.3g})</span>'
