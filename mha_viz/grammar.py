"""English sentences that come with their gold annotation, because they are built from it.

A sentence is told from left to right: each noun phrase either brings in somebody new or refers back with a pronoun,
and a pronoun is used only where exactly one of those told so far fits its gender, its number and what it does. Between
a verb and its subject, and between a pronoun and its antecedent, stand phrases of another number or gender, so that no
fixed distance explains a relation; and neither the first of those told nor the last is often meant. Dependencies
follow Universal Dependencies; every noun phrase is a mention.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from mha_viz.lexicon import (
    ACTORS,
    ADJECTIVES,
    AGAIN,
    BECAUSE,
    BESIDE,
    CASES,
    FEATURES,
    GENDERS,
    GIVING,
    HOW,
    LIVING,
    NAMES,
    NOUNS,
    OFTEN,
    PRONOUNS,
    STATES,
    TELLING,
    VERBS,
    VERY,
    WHERE,
    Noun,
    Verb,
)
from mha_viz.treebank import Corpus, Mention, Sentence, Word

# ---- trees ----------------------------------------------------------------------------------------------


@dataclass
class _Node:
    """A word with what depends on it, before and after it. ``chain`` is set where it heads a mention."""

    form: str
    upos: str
    relation: str = ""
    features: str = ""
    before: list[_Node] = field(default_factory=list)
    after: list[_Node] = field(default_factory=list)
    chain: str = ""

    def under(self, relation: str) -> _Node:
        """The same node as a dependent."""
        self.relation = relation
        return self

    def walk(self) -> Iterator[_Node]:
        """Every node of this tree in the order of the sentence."""
        for node in self.before:
            yield from node.walk()
        yield self
        for node in self.after:
            yield from node.walk()


def _written(root: _Node) -> Sentence:
    """The words of a tree, with a capital and the mentions that its noun phrases are."""
    nodes = list(root.walk())
    place = {id(node): index for index, node in enumerate(nodes)}
    heads = {id(child): place[id(node)] for node in nodes for child in (*node.before, *node.after)}
    forms = [_article(node.form, after.form) for node, after in zip(nodes, [*nodes[1:], root], strict=True)]
    forms[0] = forms[0][0].upper() + forms[0][1:]
    words = tuple(
        Word(form, node.upos, heads.get(id(node)), node.relation, node.features)
        for form, node in zip(forms, nodes, strict=True)
    )
    mentions = [_mention(node, place) for node in nodes if node.chain]
    return Sentence(words, tuple(sorted(mentions, key=lambda mention: (mention.start, -mention.end))))


def _article(form: str, following: str) -> str:
    return "an" if form == "a" and following[0] in "aeiou" else form


def _mention(node: _Node, place: dict[int, int]) -> Mention:
    """The span of a noun phrase: all that depends on it, but for the preposition before it."""
    first = next((n for n in node.before if n.relation != "case"), node)
    start, *_ = first.walk()
    *_, end = node.walk()
    return Mention(node.chain, place[id(start)], place[id(end)] + 1, place[id(node)])


# ---- telling --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entity:
    """Somebody or something told of: ``fits`` is the pronoun that refers to it, ``lemma`` its noun or name."""

    chain: str
    fits: str
    kind: str
    lemma: str

    @property
    def alive(self) -> bool:
        return self.kind in LIVING


class _Telling:
    """One sentence as it is told. ``told`` holds who was mentioned so far, in order, again at every mention."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.told: list[_Entity] = []
        self.past = random.random() < 0.25
        self.room = random.choice((1, 2, 2, 3))  # for phrases that lengthen the sentence

    def chance(self, share: float) -> bool:
        """True in ``share`` of the cases."""
        return self.random.random() < share

    # ---- noun phrases

    def clear(self, kinds: Sequence[str], besides: Sequence[_Entity] = (), acting: bool = False) -> list[_Entity]:
        """Who can be meant by a pronoun: nobody else told so far has the same one.

        What somebody does or is tells the living from the rest besides: "it was tired", "it was broken".
        """
        known = list(dict.fromkeys(self.told))
        share = Counter((e.fits, acting and e.alive) for e in known)
        alone = [e for e in known if share[e.fits, acting and e.alive] == 1]
        return [e for e in alone if e.kind in kinds and e not in besides]

    def phrase(
        self, kinds: Sequence[str], case: str, back: float, besides: Sequence[_Entity] = (), long: bool = True
    ) -> tuple[_Node, _Entity]:
        """Somebody of one of the ``kinds``: known already, with the chance ``back``, or new."""
        known = self.clear(kinds, besides, acting=case == "nominative")
        if known and self.chance(back if len(set(self.told)) > 1 else back / 3):  # seldom where there is no choice
            return self.pronoun(self.far(known), case)
        return self.new(self.random.choice(kinds), case, long)

    def far(self, known: Sequence[_Entity]) -> _Entity:
        """One of those known, less often the one mentioned last, least often the first."""
        told = self.told
        weights = [1 if entity == told[0] else 2 if entity == told[-1] else 3 for entity in known]
        return self.random.choices(known, weights)[0]

    def pronoun(self, entity: _Entity, case: str) -> tuple[_Node, _Entity]:
        """A word that refers back."""
        self.told.append(entity)
        kind = {"possessive": "Poss=Yes|", "reflexive": ""}.get(case, "")
        number = FEATURES[entity.fits] + "|Person=3"
        marked = {"nominative": "Case=Nom|", "accusative": "Case=Acc|"}.get(case, "")
        features = f"{marked}{number}|{kind}PronType=Prs" + ("|Reflex=Yes" if case == "reflexive" else "")
        form = PRONOUNS[entity.fits][CASES[case]]
        return _Node(form, "PRON", features=features, chain=entity.chain), entity

    def new(self, kind: str, case: str, long: bool) -> tuple[_Node, _Entity]:
        """Somebody not mentioned before, preferably with a pronoun that nobody of the kind has so far."""
        every = ("she", "he", "they") if kind == "person" else ("it", "they")
        used = {entity.fits for entity in self.told if entity.alive == (kind in LIVING)}
        fits = self.random.choices(every, [1 if pronoun in used else 6 for pronoun in every])[0]
        if kind == "person" and fits != "they" and self.chance(0.3):
            return self.name(fits)
        return self.noun(kind, fits, long)

    def name(self, fits: str) -> tuple[_Node, _Entity]:
        """Somebody by name."""
        gender = "Fem" if fits == "she" else "Masc"
        name = self.random.choice([n for n in NAMES[gender] if n not in {e.lemma for e in self.told}])
        entity = self.enter(fits, "person", name)
        return _Node(name, "PROPN", features=f"Animacy=Anim|{FEATURES[fits]}", chain=entity.chain), entity

    def enter(self, fits: str, kind: str, lemma: str) -> _Entity:
        """Somebody new is told of from here on."""
        entity = _Entity(str(len(set(self.told)) + 1), fits, kind, lemma)
        self.told.append(entity)
        return entity

    def noun(self, kind: str, fits: str, long: bool) -> tuple[_Node, _Entity]:
        """A noun with what stands before and after it."""
        lemmas = {entity.lemma for entity in self.told}
        fitting = [n for n in NOUNS if n.kind == kind and n.singular not in lemmas]
        if fits != "they":
            fitting = [n for n in fitting if GENDERS.get(n.gender) == fits]
        noun = self.random.choice(fitting)
        node = _Node(noun.plural if fits == "they" else noun.singular, "NOUN", features=_of(noun, fits))
        node.before = [self.determiner(kind, fits), *self.adjectives(kind)]
        entity = self.enter(fits, kind, noun.singular)
        node.chain = entity.chain
        if long:
            node.after += self.more(entity)
        return node, entity

    def determiner(self, kind: str, fits: str) -> _Node:
        """An article or, for what can be owned, its owner."""
        owned = self.chance({"thing": 0.45, "animal": 0.45, "person": 0.12}.get(kind, 0.0))
        if owned and (self.room > 0 or self.clear(LIVING)):
            return self.owner()
        choices = ("the", "the", "the", "some", "these") if fits == "they" else ("the", "the", "the", "a", "this")
        return _Node(self.random.choice(choices), "DET", "det", f"Number={'Plur' if fits == 'they' else 'Sing'}")

    def owner(self) -> _Node:
        """As in "her" and "the king 's"."""
        known = self.clear(LIVING)
        if known and (self.room < 1 or self.chance(0.75)):
            return self.pronoun(self.far(known), "possessive")[0].under("nmod:poss")
        self.room -= 1
        node, entity = self.new("person", "possessive", long=False)
        node.after.append(_Node("'" if entity.fits == "they" and node.form[-1] == "s" else "'s", "PART", "case"))
        return node.under("nmod:poss")

    def adjectives(self, kind: str) -> list[_Node]:
        """None to two."""
        return [_Node(self.random.choice(words), "ADJ", "amod") for words in ADJECTIVES[kind] if self.chance(0.2)]

    def more(self, entity: _Entity) -> list[_Node]:
        """What stands between a noun and the rest: a place or a person near it, or a relative clause."""
        if self.room > 0 and self.chance(0.45):
            self.room -= 1
            return [self.beside(entity)]
        if self.room > 1 and entity.kind != "place" and self.chance(0.5):
            self.room -= 2
            return [(self.who if self.chance(0.4) else self.whom)(entity).under("acl:relcl")]
        return []

    def beside(self, entity: _Entity) -> _Node:
        """As in "near the tower"; only the living are with each other."""
        near, other = self.phrase(("person", "animal", "place"), "accusative", 0.0, long=False)
        both = entity.alive and other.alive
        near.before.insert(0, _Node(self.random.choice(("with", *BESIDE) if both else BESIDE), "ADP", "case"))
        return near.under("nmod")

    def who(self, entity: _Entity) -> _Node:
        """As in "the girl who feeds the dogs"."""
        relative = _Node("who" if entity.kind == "person" else "that", "PRON", features="PronType=Rel")
        return self.predicate(relative, entity, long=False)

    def whom(self, entity: _Entity) -> _Node:
        """As in "the letter that the queen likes"."""
        relative = _Node("whom" if entity.kind == "person" else "that", "PRON", "obj", "PronType=Rel")
        subject, actor = self.phrase(("person",), "nominative", 0.35, [entity], long=False)
        verb = self.random.choice([v for v in VERBS if "person" in v.subjects and entity.kind in v.objects])
        node = self.verb(verb, subject, actor)
        node.before.insert(0, relative)
        return node

    # ---- clauses

    def clause(self, back: float) -> _Node:
        """A subject and what it does or is; its head has no relation yet."""
        subject, actor = self.phrase(ACTORS, "nominative", back)
        return self.predicate(subject, actor)

    def predicate(self, subject: _Node, actor: _Entity, long: bool = True) -> _Node:
        """What somebody does or is."""
        if self.chance(0.5 if actor.kind in ("thing", "place") else 0.15):
            return self.state(subject, actor)
        if actor.kind == "person" and self.chance(0.12):
            return self.giving(subject, actor)
        verb = self.random.choice([v for v in VERBS if actor.kind in v.subjects])
        node = self.verb(verb, subject, actor)
        if verb.objects:
            node.after.append(self.object(verb, actor, long))
        if long and self.chance(0.3):
            node.after.append(self.ending(verb, actor))
        return node

    def object(self, verb: Verb, actor: _Entity, long: bool) -> _Node:
        """Whom or what it is done to: the actor itself only with a reflexive."""
        if actor in self.clear(verb.objects) and verb.base in ("admire", "paint", "like", "see") and self.chance(0.35):
            return self.pronoun(actor, "reflexive")[0].under("obj")
        return self.phrase(verb.objects, "accusative", 0.35, [actor], long)[0].under("obj")

    def ending(self, verb: Verb, actor: _Entity) -> _Node:
        """How or where it is done."""
        if verb.static or self.chance(0.5):
            willing = actor.kind == "person" and not verb.static
            return _Node(self.random.choice(HOW if willing else AGAIN), "ADV", "advmod")
        node, near = self.phrase(("place", "place", "person"), "accusative", 0.0, long=False)
        case = self.random.choice(WHERE if near.kind == "place" else WHERE[1:])
        node.before.insert(0, _Node(case, "ADP", "case"))
        return node.under("obl")

    def giving(self, subject: _Node, actor: _Entity) -> _Node:
        """As in "the aunt gives them a picture"."""
        node = self.verb(self.random.choice(GIVING), subject, actor)
        node.after.append(self.phrase(("person",), "accusative", 0.4, [actor], long=False)[0].under("iobj"))
        node.after.append(self.new("thing", "accusative", long=False)[0].under("obj"))
        return node

    def state(self, subject: _Node, actor: _Entity) -> _Node:
        """As in "it is too tired"."""
        node = _Node(self.random.choice(STATES[actor.kind]), "ADJ")
        node.before = [subject.under("nsubj"), self.be(actor, "cop")]
        if self.chance(0.4):
            node.before.append(_Node(self.random.choice(VERY), "ADV", "advmod"))
        return node

    def be(self, actor: _Entity, relation: str) -> _Node:
        plural = actor.fits == "they"
        form = ("were" if plural else "was") if self.past else ("are" if plural else "is")
        return _Node(form, "AUX", relation, f"Number={'Plur' if plural else 'Sing'}")

    def verb(self, verb: Verb, subject: _Node, actor: _Entity) -> _Node:
        """The verb in one of its forms, with its subject and the words between them."""
        subject.under("nsubj")
        draw = self.random.random()
        if not verb.static and draw < (0.6 if self.past else 0.12):
            return self.going_on(verb, subject, actor)
        if self.past or draw > 0.9:
            return self.denied(verb, subject, actor)
        return self.plain(verb, subject, actor)

    def plain(self, verb: Verb, subject: _Node, actor: _Entity) -> _Node:
        plural = actor.fits == "they"
        features = f"Number={'Plur' if plural else 'Sing'}|Person=3|Tense=Pres|VerbForm=Fin"
        node = _Node(verb.base if plural else verb.s, "VERB", features=features, before=[subject])
        if self.chance(0.3):
            node.before.append(_Node(self.random.choice(OFTEN), "ADV", "advmod"))
        return node

    def going_on(self, verb: Verb, subject: _Node, actor: _Entity) -> _Node:
        return _Node(verb.ing, "VERB", features="VerbForm=Part", before=[subject, self.be(actor, "aux")])

    def denied(self, verb: Verb, subject: _Node, actor: _Entity) -> _Node:
        plural = actor.fits == "they"
        number = f"Number={'Plur' if plural else 'Sing'}"
        do = _Node("did", "AUX", "aux") if self.past else _Node("do" if plural else "does", "AUX", "aux", number)
        denial = _Node(self.random.choice(("not", "n't")), "PART", "advmod")
        return _Node(verb.base, "VERB", features="VerbForm=Inf", before=[subject, do, denial])

    # ---- sentences

    def opened(self) -> _Node:
        """A clause, which may begin as in "behind the tower , the king sings": so the first is not always meant."""
        if not self.chance(0.55):
            return self.clause(0.0)
        near, _ = self.new(self.random.choice(("person", "animal", "place", "place")), "accusative", long=False)
        near.before.insert(0, _Node(self.random.choice(BESIDE), "ADP", "case"))
        root = self.clause(0.0)
        near.under("obl").after.append(_Node(",", "PUNCT", "punct"))
        root.before.insert(0, near)
        return root

    def simple(self) -> _Node:
        """One clause."""
        return self.opened()

    def reason_last(self) -> _Node:
        """As in "the animal did not cross the street because it was too tired"."""
        root = self.opened()
        root.after.append(self.reason())
        return root

    def reason_first(self) -> _Node:
        """As in "because it was tired , the animal slept"; the pronoun comes second all the same."""
        reason = self.marked(self.random.choice(BECAUSE), self.clause(0.0)).under("advcl")
        reason.after.append(_Node(",", "PUNCT", "punct"))
        root = self.clause(0.85)
        root.before.insert(0, reason)
        return root

    def reason(self) -> _Node:
        return self.marked(self.random.choice(BECAUSE), self.clause(0.85)).under("advcl")

    def marked(self, mark: str, clause: _Node) -> _Node:
        """A clause as part of another."""
        clause.before.insert(0, _Node(mark, "SCONJ", "mark"))
        return clause

    def reported(self) -> _Node:
        """As in "the girls near the king say that they are happy"."""
        subject, actor = self.phrase(("person",), "nominative", 0.0)
        root = self.verb(self.random.choice(TELLING), subject, actor)
        root.after.append(self.marked("that", self.clause(0.7)).under("ccomp"))
        return root

    def two(self) -> _Node:
        """As in "the queen sings , but he does not like her"."""
        root = self.opened()
        other = self.clause(0.8)
        other.before[:0] = [_Node(",", "PUNCT", "punct"), _Node(self.random.choice(("and", "but")), "CCONJ", "cc")]
        root.after.append(other.under("conj"))
        return root


def _of(noun: Noun, fits: str) -> str:
    animacy = "Anim" if noun.kind in LIVING else "Inan"
    gender = f"Gender={noun.gender}|" if noun.gender else ""
    return f"Animacy={animacy}|{gender}Number={'Plur' if fits == 'they' else 'Sing'}"


_SHAPES = (  # with how often each is told
    (_Telling.simple, 4),
    (_Telling.reason_last, 6),
    (_Telling.reason_first, 3),
    (_Telling.reported, 4),
    (_Telling.two, 3),
)


def sentence(random: Random) -> Sentence:
    """The next sentence that ``random`` gives."""
    telling = _Telling(random)
    (shape,) = random.choices([shape for shape, _ in _SHAPES], [often for _, often in _SHAPES])
    root = shape(telling).under("root")
    root.after.append(_Node(".", "PUNCT", "punct"))
    return _written(root)


# ---- a corpus -------------------------------------------------------------------------------------------


def corpus(count: int = 400, seed: int = 0) -> Corpus:
    """``count`` sentences, each a document of its own; the same for the same ``seed`` everywhere."""
    random = Random(f"corpus {seed}")  # not the stream that the toy model learns from under the same seed
    placed, line = list[Sentence](), 1
    for number in range(1, count + 1):
        told = sentence(random)
        placed.append(Sentence(told.words, told.mentions, f"sentence {number}", line))
        line += len(told.words) + 2  # a comment before, a blank line after
    digest = hashlib.sha256(as_conllu(placed).encode()).hexdigest()
    return Corpus("grammar", tuple(placed), digest, has_trees=True, has_chains=True)


def as_conllu(sentences: Sequence[Sentence]) -> str:
    """The sentences as CoNLL-U, each a document, with their chains in the manner of GUM."""
    return "".join(f"# newdoc id = {s.document}\n" + "\n".join(_rows(s)) + "\n\n" for s in sentences)


def _rows(told: Sentence) -> Iterator[str]:
    for index, word in enumerate(told.words):
        head = 0 if word.head is None else word.head + 1
        entity = _brackets(told.mentions, index)
        fields = (index + 1, word.form, "_", word.upos, "_", word.features or "_", head, word.relation, "_", entity)
        yield "\t".join(map(str, fields))


def _brackets(mentions: Sequence[Mention], index: int) -> str:
    """The mentions that begin and end at a word: "(1)(2" and "2)". Wider ones open first and close last."""
    opened = [f"({m.chain}" + ")" * (m.end == index + 1) for m in mentions if m.start == index]
    closed = [f"{m.chain})" for m in reversed(mentions) if m.end == index + 1 and m.start < index]
    return f"Entity={''.join(opened + closed)}" if opened or closed else "_"
