"""A style sheet that remembers which rules hold for a node, for every node in the same place: Textual matches all rules anew for
each widget below the one whose class or focus changes, which is most of what a key costs. Knows no widget of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from textual.app import App
from textual.cache import LRUCache
from textual.css.model import RuleSet, SelectorType
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget


class RulesFound(NamedTuple):
    """What holds for a node, and which of its states the rules ask for."""

    rules: RulesMap
    asks: tuple[bool, bool, bool, bool]


class RuleMemory:
    """What was found with these rules. `places` numbers places: a node's own marks below the number of its parent's place."""

    def __init__(self, rules: list[RuleSet]) -> None:
        self.rules = rules  # kept, so that nothing else gets their identities
        selectors = (s for rule in rules for chain in rule.selector_set for s in chain.selectors)
        self.ids = {s.name for s in selectors if s.type is SelectorType.ID}
        self.places: dict[tuple[object, ...], int] = {}
        self.found: dict[int, RulesFound] = {}


class RememberingStylesheet(Stylesheet):
    """As Textual's. A place is all that a rule can ask for: type, id, classes and state of a node and of all above it. What
    Textual itself shares between no two nodes is worked out each time: where a rule asks which child of its parent a node is,
    or whether the focus is within it."""

    _memories: ClassVar[LRUCache[tuple[int, ...], RuleMemory]] = LRUCache(64)

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._memory, self._memory_of = RuleMemory([]), None
        self._worn: WeakKeyDictionary[DOMNode, tuple[RulesMap, RulesMap]] = WeakKeyDictionary()
        self._above: dict[DOMNode, int] | None = None  # places already known, while no node changes

    def apply(self, node: DOMNode, *, animate: bool = False, cache: dict[Any, RulesMap] | None = None) -> None:
        memory = self._look_up()
        place = self._memory_slot(node, memory)
        if (found := memory.found.get(place)) is not None:
            node._has_hover_style, node._has_focus_within, node._has_order_style, node._has_odd_or_even = found.asks
            self._wear(node, found.rules, animate)
            self._process_component_classes(node)
            return
        shared: dict[Any, RulesMap] = {}
        super().apply(node, animate=animate, cache=shared)
        for rules in shared.values():
            asks = (node._has_hover_style, node._has_focus_within, node._has_order_style, node._has_odd_or_even)
            memory.found[place] = RulesFound(rules, asks)

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
        own = (above, type(node), node.id if node.id in memory.ids else None, node.classes, _state(node))
        place = memory.places.setdefault(own, len(memory.places))
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
            self.replace_rules(node, rules, animate)
            self._worn[node] = (rules, base._rules.copy())


def _state(node: DOMNode) -> object:
    if isinstance(node, Widget):
        return (*node._pseudo_classes_cache_key, node.allow_focus())
    return frozenset(node.get_pseudo_classes()) if isinstance(node, App) else None
