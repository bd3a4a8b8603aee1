"""Classify English words: function words, third-person pronouns, and words that may be nouns.

There is no tagger. Function words are a closed list. A word may be a noun or a name unless it is a function word or a
number, is in a list of verbs, adjectives and adverbs, or ends like one of these. Context matters, too. After a
determiner, a form of a verb is a noun ("the call"); after a subject or an auxiliary it is not. A past form is not a
noun if only an adjective or a numeral precedes it ("the rich gave"). A capital letter within a sentence makes a name.

The finding on pronouns (:mod:`mha_viz.analysis.unusual_heads`) names words in sentences of three treebanks; 97% of
these words are tagged NOUN or PROPN. A few adjectives were added to the list after errors in these sentences (96%
before).
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def split_words(text: str) -> frozenset[str]:
    """Split words at blanks into a set."""
    return frozenset(text.split())


# Third-person pronouns.
PRONOUNS = split_words("he him his himself she her hers herself it its itself they them their theirs themselves")
_DETERMINERS = split_words(
    "a an the this these those my your his her its our their whose no every each some any another which what"
)
_PREPOSITIONS = split_words(
    "about above across against along amid among around as at before behind below beneath beside besides "
    "between beyond by despite down during except for from in inside into like near of off on onto out outside "
    "over past per through throughout toward towards under underneath up upon via with within without after"
)
_SUBJECTS = split_words("i you he she we they it who")
_AUXILIARIES = split_words(
    "am is are was were be been being do does did can could will would shall should may might must cannot"
)
FUNCTION_WORDS = (
    PRONOUNS
    | _DETERMINERS
    | _PREPOSITIONS
    | _SUBJECTS
    | _AUXILIARIES
    | split_words(
        "that all both either neither half such other me mine myself us ours ourselves yours yourself yourselves "
        "whom whoever whatever one ones oneself others someone somebody something anyone anybody anything everyone "
        "everybody everything nobody nothing none doing done have has had having ought not and or but nor so yet if "
        "because although though while when whenever where wherever whereas unless until till since than whether "
        "once lest to here there then now too also very just only even still already again ever never always often "
        "sometimes soon how why however therefore thus hence perhaps maybe quite rather almost much many more most "
        "less least few little several enough own same yes oh let we"
    )
)
_CONTRACTIONS = ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m")
_IRREGULARS = frozenset(("can't", "won't", "shan't", "ain't", "cant", "wont", "dont", "gonna", "wanna", "gotta"))
_VERBS = split_words(
    "accept add admit agree allow answer appear apply argue arrive ask assume avoid bark become begin believe "
    "belong bite blame borrow break bring build burn buy call care carry catch change chase choose claim clean "
    "climb close come complain contain continue cook cost count cover create cross cry cut decide deny depend "
    "describe destroy develop die disappear discover discuss drink drive drop eat enjoy enter escape exist "
    "expect explain fail fall feed feel fight fill find finish fit fix flee fly follow forget forgive freeze "
    "get give go grow guess happen hate hear help hide hit hold hope hurt identify ignore imagine improve "
    "include increase invite join jump keep kick kill kiss know laugh lay lead learn leave lend let lie lift "
    "like listen live look lose love make marry matter mean meet melt mention miss move need notice obey occur "
    "offer open order own paint pass pay persuade pick play point prefer prepare pretend prevent produce "
    "promise protect prove provide pull push put reach read realize receive recognize recommend refuse remain "
    "remember remind remove repeat replace require return ride ring rise run save say see seek seem sell send "
    "serve set share shine shout show shut sing sink sit sleep smell smile solve speak spend spill stand start "
    "stay steal stick stop study succeed suggest support suppose surprise survive swim take talk taste teach "
    "tear tell thank think throw touch travel treat try turn understand use visit wait wake walk want warn wash "
    "waste watch wear win wish wonder work worry write bake boil chop dig fry grab "
    "hang heat insert install lock mix peel pour press raise roll shake slice slide stir switch tie toss unlock"
)
_PAST_FORMS = split_words(
    "ate became began bent bit blew bought broke brought built came caught chose cost cut did drank drew drove "
    "fed fell fallen felt fled flew fought forgave forgot forgotten found froze frozen gave given went gone got "
    "gotten grew grown heard held hid hidden hit hung hurt kept knew known laid lain led left lent lit lost "
    "made meant met paid quit ran rang read rode ridden risen rose said sang sank sat saw seen sent shook "
    "shaken shone shot shown slept slid sold sought spent spilt spoke spoken spun stood stole stolen stuck "
    "struck sung sunk swam swept swore taken taught thought threw thrown told took tore torn understood woke "
    "won wore worn wove wrote written beat beaten burnt burst bred clung crept dealt dreamt dug flung knelt leapt "
    "learnt shrank slung spat sprang sprung stank stung strode strove swung trod wept wound wrung"
)
# Adjectives, adverbs, numerals and interjections.
_MODIFIERS = split_words(
    "ago aground alone apart aside asleep awake away back early else far fast forward hard home late later low "
    "nearby nevertheless instead next okay ok please right straight today together tomorrow tonight well "
    "yesterday yeah um uh hello hi hey wow alright anyway anyways anywhere somewhere nowhere everywhere "
    "thereafter afraid alive angry available aware bad beautiful best better big black blue bored brave bright "
    "broken brown busy certain cheap clear clever cold cool correct dark dead dear deep different difficult "
    "dirty dry easy empty expensive fair false famous fat final fine first foolish free fresh friendly full "
    "funny gentle glad good great green grey guilty happy healthy heavy high hot huge hungry ill important "
    "impossible innocent kind large last lazy light likely lonely long loud lucky mad main narrow new nice old "
    "older particular pleased poor popular possible pretty proud quick quiet rare ready real red rich rough sad "
    "safe second serious shallow sharp short shy sick similar simple slow small smart soft sorry special steep "
    "strange strong stupid sure sweet tall taller thick thin third thirsty tight tiny tired true ugly unable "
    "urgent warm weak wet white whole wide wild wise worse worst wrong yellow young younger two three four five "
    "six seven eight nine ten eleven twelve hundred thousand million afterward afterwards meanwhile otherwise besides "
    "furthermore moreover indeed nonetheless likewise anyhow somehow overnight upstairs downstairs outdoors indoors "
    "abroad forever twice seldom backwards forwards upwards downwards sideways altogether alas sleepy weary calm sober "
    "numb pale ashamed alert eager modest blind bald silent superior timid casual sore slim dumb lame faint humble"
)
# Nouns that end like a verb form or like an adverb.
_NOUNS_LIKE_VERBS = split_words(
    "bed seed feed speed weed breed shed sled reed deed steed greed creed family fly reply ally belly italy "
    "july bully supply assembly butterfly jelly lily monopoly rally anomaly holly polly sally billy kelly emily "
    "molly lilly willy thing king ring string spring morning evening ceiling wedding wing sibling "
    "clothing sting pudding earring darling duckling offspring beijing herring lightning ned "
    "fred ted alfred"
)
# Patterns of code: a call or an index, braces, an assignment or a comparison, an arrow, the end of a tag; a semicolon
# or a keyword in a place where sentences have none.
_CODE = re.compile(
    r"[^\W\d]\w*(?:\((?!e?s\)|[A-Z]{2,}\))|\[(?!\d+\]))|[{}]|[^\W\d]\w*[\])]?\s*[-+*/%|&!<>=]?=|[-=]>|</|/>|::|&&|\s\|\s|\$\s?[a-z]|;\s*$"
    r"|\b(?:def|elif|lambda|const|var|async|await) \w|:\s*(?:return|pass|print|break|continue|yield)\b"
    r"|^\s*(?:import \S+(?: as \S+)?|from \S+ import .*|SELECT .* FROM .*)$",
    re.MULTILINE,
)
_ADDRESS = re.compile(r"\S*(?:://|www\.|@)\S*")
_ADJECTIVE_ENDINGS = ("ous", "ful", "able", "ible", "less", "ish", "ive")
_SENTENCE_OPENERS = ".!?…:;\"“”'‘’«»([-–—*•>"  # a word after one of these may be capitalised without being a name


def normalize_case(word: str) -> str:
    """Return the word in lower case, with a straight apostrophe."""
    return word.casefold().replace("’", "'")


def _strip_contraction(word: str) -> str:
    """Return the beginning of an English contraction: "it" for "it's"; any other word unchanged."""
    return next((word.removesuffix(end) for end in _CONTRACTIONS if word.endswith(end) and word != end), word)


def is_closed_class(word: str) -> bool:
    """Return whether a word is of a closed class, contracted or not."""
    lower_word = normalize_case(word)
    return lower_word in _IRREGULARS or _strip_contraction(lower_word) in FUNCTION_WORDS


def is_pronoun(word: str) -> bool:
    """Return whether a word is a third-person pronoun, contracted or not."""
    return _strip_contraction(normalize_case(word)) in PRONOUNS


def is_code(text: str) -> bool:
    """Return whether a text looks like a program, in which names are not words. Web addresses do not count as code."""
    return bool(_CODE.search(_ADDRESS.sub(" ", text)))


def find_nouns(words: Sequence[str]) -> list[bool]:
    """Return for each word whether it may be a noun or a name. ``words`` are in order and include punctuation marks."""
    is_all_caps = all(word == word.upper() for word in words if word[:1].isalpha())
    return [_may_be_noun(word, words[i - 1] if i else ".", is_all_caps) for i, word in enumerate(words)]


def _may_be_noun(word: str, previous_word: str, is_all_caps: bool) -> bool:
    lower_word, previous = normalize_case(word), normalize_case(previous_word)
    if is_closed_class(word) or not any(character.isalpha() for character in word):
        return False
    if word[0].isupper() and not is_all_caps and previous not in _SENTENCE_OPENERS:
        return True
    has_determiner = previous in _DETERMINERS or (previous.endswith("'s") and not is_closed_class(previous))
    has_modifier = has_determiner or previous in _MODIFIERS
    if lower_word in _NOUNS_LIKE_VERBS:
        return True
    if lower_word in _PAST_FORMS:  # "the rich gave" and "two broke" have a modifier without a noun
        return has_determiner
    if lower_word in _MODIFIERS or lower_word.endswith("ly") or (lower_word.endswith("ed") and len(lower_word) > 3):
        return False
    if lower_word.endswith("ing") and len(lower_word) > 4:
        return has_modifier
    bases = (
        lower_word,
        lower_word.removesuffix("s"),
        lower_word.removesuffix("es"),
        re.sub("ies$", "y", lower_word),
    )
    if any(base in _VERBS for base in bases):  # verbs in -ed and -ing need no list
        return has_modifier or previous in _PREPOSITIONS
    is_predicate = (
        previous in _SUBJECTS or previous in _AUXILIARIES or previous in ("to", "not") or previous.endswith("n't")
    )
    return not is_predicate and (has_modifier or not lower_word.endswith(_ADJECTIVE_ENDINGS))
