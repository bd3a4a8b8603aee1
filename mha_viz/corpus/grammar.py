"""English sentences with gold annotation, sampled from a grammar.

A sentence is generated from left to right. Each noun phrase either introduces a new entity or refers back with a
pronoun, and a pronoun is used only where exactly one of the entities mentioned so far matches its gender, its number
and its role. Phrases of another number or gender stand between a verb and its subject, and between a pronoun and its
antecedent, so that no fixed distance explains a relation; the antecedent is seldom the first or the last entity
mentioned. Dependencies follow Universal Dependencies; every noun phrase is a mention.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.lexicon import (
    ACTOR_KINDS,
    ADJECTIVES,
    CASES,
    DEGREE_ADVERBS,
    DITRANSITIVE_VERBS,
    FEATURES,
    FREQUENCY_ADVERBS,
    GENDERS,
    LIVING_KINDS,
    MANNER_ADVERBS,
    NAMES,
    NOUN_PREPOSITIONS,
    NOUNS,
    PLACE_PREPOSITIONS,
    PRONOUNS,
    REPORTING_VERBS,
    STATE_ADJECTIVES,
    SUBORDINATORS,
    TIME_ADVERBS,
    VERBS,
    Verb,
)
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.corpus.trees import Node, linearise

CACHE_SIZE = 4  # corpora in the cache, of one or two megabytes each

# ---- generation -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entity:
    """A person or thing. ``pronoun`` is the subject pronoun that refers to it, ``lemma`` its noun or name."""

    chain: str
    pronoun: str
    kind: str
    lemma: str

    @property
    def is_living(self) -> bool:
        return self.kind in LIVING_KINDS


class _Generator:
    """Generates one sentence. ``mentions`` holds the entity of every mention so far, in order, with repetitions.

    The methods take ``is_long``: whether modifiers may follow the noun or the verb.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.mentions: list[_Entity] = []
        self.is_past = rng.random() < 0.25
        self.budget = rng.choice((1, 2, 2, 3))  # how many optional phrases may follow

    def draw_bool(self, probability: float) -> bool:
        """Return True with a given probability."""
        return self.rng.random() < probability

    # ---- noun phrases

    def find_unambiguous(
        self, kinds: Sequence[str], excluded: Sequence[_Entity] = (), as_subject: bool = False
    ) -> list[_Entity]:
        """Return the entities that a pronoun can refer to: no other entity so far has the same pronoun.

        With ``as_subject``, the pronoun is a subject, so its predicate also tells living beings from things: "it was
        tired", "it was broken".
        """
        entities = list(dict.fromkeys(self.mentions))
        count = Counter((e.pronoun, as_subject and e.is_living) for e in entities)
        unique = [e for e in entities if count[e.pronoun, as_subject and e.is_living] == 1]
        return [e for e in unique if e.kind in kinds and e not in excluded]

    def phrase(
        self, kinds: Sequence[str], case: str, p_pronoun: float, excluded: Sequence[_Entity] = (), is_long: bool = True
    ) -> tuple[Node, _Entity]:
        """Return a noun phrase of one of the ``kinds``: a pronoun with probability ``p_pronoun``, else a new entity."""
        candidates = self.find_unambiguous(kinds, excluded, as_subject=case == "nominative")
        is_single = len(set(self.mentions)) <= 1  # with one entity there is no choice to learn: use fewer pronouns
        if candidates and self.draw_bool(p_pronoun / 3 if is_single else p_pronoun):
            return self.pronoun(self.choose_antecedent(candidates), case)
        return self.new_entity(self.rng.choice(kinds), case, is_long)

    def choose_antecedent(self, candidates: Sequence[_Entity]) -> _Entity:
        """Choose one of the candidates. The entity mentioned last is less likely, the first one least likely."""
        mentions = self.mentions
        weights = [1 if entity == mentions[0] else 2 if entity == mentions[-1] else 3 for entity in candidates]
        return self.rng.choices(candidates, weights)[0]

    def pronoun(self, entity: _Entity, case: str) -> tuple[Node, _Entity]:
        """Return a pronoun that refers to an entity."""
        self.mentions.append(entity)
        possessive_feature = "Poss=Yes|" if case == "possessive" else ""
        agreement = FEATURES[entity.pronoun] + "|Person=3"
        case_feature = {"nominative": "Case=Nom|", "accusative": "Case=Acc|"}.get(case, "")
        reflexive_feature = "|Reflex=Yes" if case == "reflexive" else ""
        features = f"{case_feature}{agreement}|{possessive_feature}PronType=Prs{reflexive_feature}"
        form = PRONOUNS[entity.pronoun][CASES[case]]
        return Node(form, "PRON", features=features, chain=entity.chain), entity

    def new_entity(self, kind: str, case: str, is_long: bool) -> tuple[Node, _Entity]:
        """Introduce a new entity, preferably with a pronoun that no other entity of its kind has."""
        choices = ("she", "he", "they") if kind == "person" else ("it", "they")
        used_pronouns = {entity.pronoun for entity in self.mentions if entity.is_living == (kind in LIVING_KINDS)}
        pronoun = self.rng.choices(choices, [1 if pronoun in used_pronouns else 6 for pronoun in choices])[0]
        if kind == "person" and pronoun != "they" and self.draw_bool(0.3):
            return self.named_person(pronoun)
        return self.noun(kind, pronoun, is_long)

    def named_person(self, pronoun: str) -> tuple[Node, _Entity]:
        """Introduce a new person by name."""
        gender = "Fem" if pronoun == "she" else "Masc"
        name = self.rng.choice([n for n in NAMES[gender] if n not in {e.lemma for e in self.mentions}])
        entity = self.record_entity(pronoun, "person", name)
        return Node(name, "PROPN", features=f"Animacy=Anim|{FEATURES[pronoun]}", chain=entity.chain), entity

    def record_entity(self, pronoun: str, kind: str, lemma: str) -> _Entity:
        """Record a new entity."""
        entity = _Entity(str(len(set(self.mentions)) + 1), pronoun, kind, lemma)
        self.mentions.append(entity)
        return entity

    def noun(self, kind: str, pronoun: str, is_long: bool) -> tuple[Node, _Entity]:
        """Introduce a new entity by a noun with its modifiers."""
        lemmas = {entity.lemma for entity in self.mentions}
        candidates = [n for n in NOUNS if n.kind == kind and n.singular not in lemmas]
        if pronoun != "they":
            candidates = [n for n in candidates if GENDERS.get(n.gender) == pronoun]
        noun = self.rng.choice(candidates)
        form, number = (noun.plural, "Plur") if pronoun == "they" else (noun.singular, "Sing")
        gender = f"Gender={noun.gender}|" if noun.gender else ""
        animacy = "Anim" if noun.kind in LIVING_KINDS else "Inan"
        node = Node(form, "NOUN", features=f"Animacy={animacy}|{gender}Number={number}")
        node.before = [self.determiner(kind, pronoun), *self.adjectives(kind)]
        entity = self.record_entity(pronoun, kind, noun.singular)
        node.chain = entity.chain
        if is_long:
            node.after += self.postmodifiers(entity)
        return node, entity

    def determiner(self, kind: str, pronoun: str) -> Node:
        """Return an article, a demonstrative or a possessor."""
        has_possessor = self.draw_bool({"thing": 0.45, "animal": 0.45, "person": 0.12}.get(kind, 0.0))
        if has_possessor and (self.budget > 0 or self.find_unambiguous(LIVING_KINDS)):
            return self.possessor()
        choices = ("the", "the", "the", "some", "these") if pronoun == "they" else ("the", "the", "the", "a", "this")
        return Node(self.rng.choice(choices), "DET", "det", f"Number={'Plur' if pronoun == 'they' else 'Sing'}")

    def possessor(self) -> Node:
        """Return a possessor, as in "her" or "the king 's"."""
        candidates = self.find_unambiguous(LIVING_KINDS)
        if candidates and (self.budget < 1 or self.draw_bool(0.75)):
            return self.pronoun(self.choose_antecedent(candidates), "possessive")[0].attach_as("nmod:poss")
        self.budget -= 1
        node, entity = self.new_entity("person", "possessive", is_long=False)
        node.after.append(Node("'" if entity.pronoun == "they" and node.form[-1] == "s" else "'s", "PART", "case"))
        return node.attach_as("nmod:poss")

    def adjectives(self, kind: str) -> list[Node]:
        """Return zero to two adjectives."""
        return [Node(self.rng.choice(words), "ADJ", "amod") for words in ADJECTIVES[kind] if self.draw_bool(0.2)]

    def postmodifiers(self, entity: _Entity) -> list[Node]:
        """Return modifiers that follow a noun: a prepositional phrase or a relative clause."""
        if self.budget > 0 and self.draw_bool(0.45):
            self.budget -= 1
            return [self.nominal_modifier(entity)]
        if self.budget > 1 and entity.kind != "place" and self.draw_bool(0.5):
            self.budget -= 2
            return [
                (self.subject_relative if self.draw_bool(0.4) else self.object_relative)(entity).attach_as("acl:relcl")
            ]
        return []

    def nominal_modifier(self, entity: _Entity) -> Node:
        """Return a phrase as in "near the tower"; "with" joins only living entities."""
        noun, noun_entity = self.phrase(("person", "animal", "place"), "accusative", 0.0, is_long=False)
        are_living = entity.is_living and noun_entity.is_living
        noun.before.insert(
            0, Node(self.rng.choice(("with", *NOUN_PREPOSITIONS) if are_living else NOUN_PREPOSITIONS), "ADP", "case")
        )
        return noun.attach_as("nmod")

    def subject_relative(self, entity: _Entity) -> Node:
        """Return a relative clause as in "the girl who feeds the dogs"."""
        relative = Node("who" if entity.kind == "person" else "that", "PRON", features="PronType=Rel")
        return self.predicate(relative, entity, is_long=False)

    def object_relative(self, entity: _Entity) -> Node:
        """Return a relative clause as in "the letter that the queen likes"."""
        relative = Node("whom" if entity.kind == "person" else "that", "PRON", "obj", "PronType=Rel")
        subject, actor = self.phrase(("person",), "nominative", 0.35, [entity], is_long=False)
        verb = self.rng.choice([v for v in VERBS if "person" in v.subjects and entity.kind in v.objects])
        node = self.verb(verb, subject, actor)
        node.before.insert(0, relative)
        return node

    # ---- clauses

    def clause(self, p_pronoun: float) -> Node:
        """Return a subject with its predicate; the head of the clause has no relation yet."""
        subject, actor = self.phrase(ACTOR_KINDS, "nominative", p_pronoun)
        return self.predicate(subject, actor)

    def predicate(self, subject: Node, actor: _Entity, is_long: bool = True) -> Node:
        """Return the predicate of a subject."""
        if self.draw_bool(0.5 if actor.kind in ("thing", "place") else 0.15):
            return self.adjectival_predicate(subject, actor)
        if actor.kind == "person" and self.draw_bool(0.12):
            return self.ditransitive_predicate(subject, actor)
        verb = self.rng.choice([v for v in VERBS if actor.kind in v.subjects])
        node = self.verb(verb, subject, actor)
        if verb.objects:
            node.after.append(self.object(verb, actor, is_long))
        if is_long and self.draw_bool(0.3):
            node.after.append(self.adverbial(verb, actor))
        return node

    def object(self, verb: Verb, actor: _Entity, is_long: bool) -> Node:
        """Return the object of a verb. The actor itself appears only as a reflexive pronoun."""
        if (
            actor in self.find_unambiguous(verb.objects)
            and verb.base in ("admire", "paint", "like", "see")
            and self.draw_bool(0.35)
        ):
            return self.pronoun(actor, "reflexive")[0].attach_as("obj")
        return self.phrase(verb.objects, "accusative", 0.35, [actor], is_long)[0].attach_as("obj")

    def adverbial(self, verb: Verb, actor: _Entity) -> Node:
        """Return an adverb or a prepositional phrase that follows the verb."""
        if verb.is_stative or self.draw_bool(0.5):
            is_deliberate = actor.kind == "person" and not verb.is_stative
            return Node(self.rng.choice(MANNER_ADVERBS if is_deliberate else TIME_ADVERBS), "ADV", "advmod")
        node, entity = self.phrase(("place", "place", "person"), "accusative", 0.0, is_long=False)
        case = self.rng.choice(PLACE_PREPOSITIONS if entity.kind == "place" else PLACE_PREPOSITIONS[1:])
        node.before.insert(0, Node(case, "ADP", "case"))
        return node.attach_as("obl")

    def ditransitive_predicate(self, subject: Node, actor: _Entity) -> Node:
        """Return a predicate as in "the aunt gives them a picture"."""
        node = self.verb(self.rng.choice(DITRANSITIVE_VERBS), subject, actor)
        node.after.append(self.phrase(("person",), "accusative", 0.4, [actor], is_long=False)[0].attach_as("iobj"))
        node.after.append(self.new_entity("thing", "accusative", is_long=False)[0].attach_as("obj"))
        return node

    def adjectival_predicate(self, subject: Node, actor: _Entity) -> Node:
        """Return a predicate as in "it is too tired"."""
        node = Node(self.rng.choice(STATE_ADJECTIVES[actor.kind]), "ADJ")
        node.before = [subject.attach_as("nsubj"), self.copula(actor, "cop")]
        if self.draw_bool(0.4):
            node.before.append(Node(self.rng.choice(DEGREE_ADVERBS), "ADV", "advmod"))
        return node

    def copula(self, actor: _Entity, relation: str) -> Node:
        is_plural = actor.pronoun == "they"
        form = ("were" if is_plural else "was") if self.is_past else ("are" if is_plural else "is")
        return Node(form, "AUX", relation, f"Number={'Plur' if is_plural else 'Sing'}")

    def verb(self, verb: Verb, subject: Node, actor: _Entity) -> Node:
        """Return the verb in one of its forms, with its subject and auxiliaries."""
        subject.attach_as("nsubj")
        draw = self.rng.random()
        if not verb.is_stative and draw < (0.6 if self.is_past else 0.12):
            return self.progressive(verb, subject, actor)
        if self.is_past or draw > 0.9:
            return self.negation(verb, subject, actor)
        return self.simple_present(verb, subject, actor)

    def simple_present(self, verb: Verb, subject: Node, actor: _Entity) -> Node:
        is_plural = actor.pronoun == "they"
        features = f"Number={'Plur' if is_plural else 'Sing'}|Person=3|Tense=Pres|VerbForm=Fin"
        node = Node(verb.base if is_plural else verb.s, "VERB", features=features, before=[subject])
        if self.draw_bool(0.3):
            node.before.append(Node(self.rng.choice(FREQUENCY_ADVERBS), "ADV", "advmod"))
        return node

    def progressive(self, verb: Verb, subject: Node, actor: _Entity) -> Node:
        return Node(verb.ing, "VERB", features="VerbForm=Part", before=[subject, self.copula(actor, "aux")])

    def negation(self, verb: Verb, subject: Node, actor: _Entity) -> Node:
        is_plural = actor.pronoun == "they"
        number = f"Number={'Plur' if is_plural else 'Sing'}"
        do = Node("did", "AUX", "aux") if self.is_past else Node("do" if is_plural else "does", "AUX", "aux", number)
        negator = Node(self.rng.choice(("not", "n't")), "PART", "advmod")
        return Node(verb.base, "VERB", features="VerbForm=Inf", before=[subject, do, negator])

    # ---- sentences

    def opening_clause(self) -> Node:
        """Return a clause, possibly after a phrase as in "behind the tower , the king sings".

        With such a phrase, the antecedent is not always the entity mentioned first.
        """
        if not self.draw_bool(0.55):
            return self.clause(0.0)
        noun, _ = self.new_entity(self.rng.choice(("person", "animal", "place", "place")), "accusative", is_long=False)
        noun.before.insert(0, Node(self.rng.choice(NOUN_PREPOSITIONS), "ADP", "case"))
        root = self.clause(0.0)
        noun.attach_as("obl").after.append(Node(",", "PUNCT", "punct"))
        root.before.insert(0, noun)
        return root

    def single_clause(self) -> Node:
        """Return a sentence of one clause."""
        return self.opening_clause()

    def reason_last(self) -> Node:
        """Return a sentence as in "the animal did not cross the street because it was too tired"."""
        root = self.opening_clause()
        root.after.append(self.reason())
        return root

    def reason_first(self) -> Node:
        """Return a sentence as in "because the animal was tired , it slept"."""
        reason = self.subordinate(self.rng.choice(SUBORDINATORS), self.clause(0.0)).attach_as("advcl")
        reason.after.append(Node(",", "PUNCT", "punct"))
        root = self.clause(0.85)
        root.before.insert(0, reason)
        return root

    def reason(self) -> Node:
        return self.subordinate(self.rng.choice(SUBORDINATORS), self.clause(0.85)).attach_as("advcl")

    def subordinate(self, mark: str, clause: Node) -> Node:
        """Turn a clause into a subordinate clause with a conjunction."""
        clause.before.insert(0, Node(mark, "SCONJ", "mark"))
        return clause

    def reported_speech(self) -> Node:
        """Return a sentence as in "the girls near the king say that they are happy"."""
        subject, actor = self.phrase(("person",), "nominative", 0.0)
        root = self.verb(self.rng.choice(REPORTING_VERBS), subject, actor)
        root.after.append(self.subordinate("that", self.clause(0.7)).attach_as("ccomp"))
        return root

    def coordination(self) -> Node:
        """Return a sentence as in "the queen sings , but he does not like her"."""
        root = self.opening_clause()
        clause = self.clause(0.8)
        clause.before[:0] = [Node(",", "PUNCT", "punct"), Node(self.rng.choice(("and", "but")), "CCONJ", "cc")]
        root.after.append(clause.attach_as("conj"))
        return root


_SENTENCE_TYPES = (  # with their relative frequencies
    (_Generator.single_clause, 4),
    (_Generator.reason_last, 6),
    (_Generator.reason_first, 3),
    (_Generator.reported_speech, 4),
    (_Generator.coordination, 3),
)


def sample_sentence(rng: Random) -> Sentence:
    """Sample a sentence."""
    generator = _Generator(rng)
    (build,) = rng.choices([build for build, _ in _SENTENCE_TYPES], [weight for _, weight in _SENTENCE_TYPES])
    root = build(generator).attach_as("root")
    root.after.append(Node(".", "PUNCT", "punct"))
    return linearise(root)


# ---- a corpus -------------------------------------------------------------------------------------------


@lru_cache(maxsize=CACHE_SIZE)
def corpus(count: int = 400, seed: int = 0) -> Corpus:
    """Sample a corpus of ``count`` sentences, each a document of its own.

    Equal seeds give equal corpora on every machine. The last few corpora are cached, because studies ask for the
    built-in corpus again and again.
    """
    rng = Random(f"corpus {seed}")  # differs from the toy model's training examples with the same seed
    sentences, line = list[Sentence](), 1
    for number in range(1, count + 1):
        sample = sample_sentence(rng)
        sentences.append(Sentence(sample.words, sample.mentions, f"sentence {number}", line))
        line += len(sample.words) + 2  # a comment before, a blank line after
    digest = hashlib.sha256(format_conllu(sentences).encode()).hexdigest()
    return Corpus("grammar", tuple(sentences), digest, has_trees=True, has_chains=True)
