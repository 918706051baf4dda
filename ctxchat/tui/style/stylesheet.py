"""A style sheet that remembers which rules hold for a node, for every node in the same place: Textual matches all rules anew for
each widget below the one whose class or focus changes, which is most of what a key costs. Knows no widget of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from textual.app import App
from textual.cache import LRUCache
from textual.css.model import _CHECKS, RuleSet, SelectorType
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

_DEPENDING = Stylesheet._EXCLUDE_PSEUDO_CLASSES_FROM_CACHE
"""States of a node that hang on others: which child of its parent it is, whether the focus is within it. Rules that ask for them
Textual matches anew each time."""


class RulesFound(NamedTuple):
    """The style rules that hold for a node (None if there are none), and the states (such as `hover`) that they ask for."""

    rules: RulesMap | None
    asks: tuple[bool, bool, bool, bool]


Marks = tuple[type[DOMNode], str | None, frozenset[str]]
"""What of a node stays while its state changes: type, id as far as rules ask for it, and classes."""


class RuleMemory:
    """The rules found so far for each place. `places` gives each place a number, by the number of its parent's place and the
    node's own type, id, classes and state."""

    def __init__(self, rules: list[RuleSet]) -> None:
        self.rules = rules  # kept, so that nothing else gets their identities
        selectors = [s for rule in rules for chain in rule.selector_set for s in chain.selectors]
        self.ids = {s.name for s in selectors if s.type is SelectorType.ID}
        self.places: dict[tuple[object, ...], int] = {}
        self.found: dict[int, RulesFound] = {}
        self._askers = [(s, s.pseudo_classes & _DEPENDING) for s in selectors if s.pseudo_classes & _DEPENDING]
        self._asked: dict[Marks, tuple[str, ...]] = {}

    def asked(self, node: DOMNode, marks: Marks) -> tuple[str, ...]:
        """The states of such a node that hang on others and that some rule asks for."""
        if (names := self._asked.get(marks)) is None:
            every = {
                name
                for selector, names in self._askers
                if _CHECKS[selector.type](selector.name, node)
                for name in names
            }
            names = self._asked[marks] = tuple(sorted(every))
        return names


class RememberingStylesheet(Stylesheet):
    """Textual's style sheet with a cache. Nodes in the same place share their rules; a place is the type, id, classes and state
    of a node and of all nodes above it."""

    _memories: ClassVar[LRUCache[tuple[int, ...], RuleMemory]] = LRUCache(64)

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._memory, self._memory_of = RuleMemory([]), None
        self._worn: WeakKeyDictionary[DOMNode, tuple[RulesMap, RulesMap]] = WeakKeyDictionary()
        self._parts_of: WeakKeyDictionary[DOMNode, tuple[RuleMemory, int]] = WeakKeyDictionary()
        self._matched: dict[DOMNode, RulesMap] = {}  # by nodes whose rules are being looked for
        self._above: dict[DOMNode, int] | None = None  # places already known, while no node changes

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[Any, RulesMap] | None = None) -> None:
        memory = self._look_up()
        place = self._memory_slot(node, memory)
        if (found := memory.found.get(place)) is not None:
            node._has_hover_style, node._has_focus_within, node._has_order_style, node._has_odd_or_even = found.asks
            if found.rules is not None:
                self._wear(node, found.rules, animate)
            self._process_component_classes(node)
            return
        super().apply(node, animate=animate)
        asks = (node._has_hover_style, node._has_focus_within, node._has_order_style, node._has_odd_or_even)
        memory.found[place] = RulesFound(self._matched.pop(node, None), asks)

    def replace_rules(self, node: DOMNode, rules: RulesMap, animate: bool = False) -> None:  # type: ignore[override]
        self._matched[node] = rules
        super().replace_rules(node, rules, animate)

    def _process_component_classes(self, node: DOMNode) -> None:
        """As Textual's, unless the node is where it was: then its parts wear what they wore."""
        if not node._get_component_classes():
            return
        memory = self._look_up()
        where = memory, self._memory_slot(node, memory)
        if self._parts_of.get(node) != where or not node._component_styles:
            super()._process_component_classes(node)
            self._parts_of[node] = where

    def update_nodes(self, nodes: Iterable[DOMNode], animate: bool = False) -> None:
        self._above = {}
        try:
            super().update_nodes(nodes, animate)
        finally:
            self._above = None

    def _look_up(self) -> RuleMemory:
        if self._memory_of is not self.rules_map:  # made anew when rules come or change
            key = tuple(map(id, self.rules))
            if (memory := self._memories.get(key)) is None:
                memory = self._memories[key] = RuleMemory(self.rules)
            self._memory, self._memory_of = memory, self.rules_map
        return self._memory

    def _memory_slot(self, node: DOMNode, memory: RuleMemory) -> int:
        if self._above is not None and (known := self._above.get(node)) is not None:
            return known
        parent = node._parent
        above = self._memory_slot(parent, memory) if isinstance(parent, DOMNode) else -1
        marks = type(node), node.id if node.id in memory.ids else None, frozenset(node.classes)
        depending = tuple(map(node.has_pseudo_class, memory.asked(node, marks)))
        place = memory.places.setdefault((above, marks, _state(node), depending), len(memory.places))
        if self._above is not None:
            self._above[node] = place
        return place

    def _wear(self, node: DOMNode, rules: RulesMap, animate: bool) -> None:
        """Put them on, unless the node wears the same."""
        base = node.styles.base
        put_on, became = self._worn.get(node, (None, None))
        if put_on == rules and base._rules == became:
            node.notify_style_update()  # it may look different all the same: what is above it shines through
        else:
            super().replace_rules(node, rules, animate)
            self._worn[node] = (rules, base._rules.copy())


def _state(node: DOMNode) -> object:
    if isinstance(node, Widget):
        return (*node._pseudo_classes_cache_key, node.allow_focus())
    return frozenset(node.get_pseudo_classes()) if isinstance(node, App) else None
