"""The words of `attnlib._french`, and what is known about each."""

from __future__ import annotations

__all__ = ["ACTS", "ADJECTIVES", "ANIMALS", "COLOURS", "FORMS", "FRENCH", "GENDER", "OF_ANIMALS", "PLACES", "VERBS"]


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


_NOUNS = {  # English to French
    ("animal", "m"): "animal:animal dog:chien cat:chat horse:cheval donkey:âne bird:oiseau rabbit:lapin fox:renard "
    "wolf:loup bear:ours",
    ("animal", "f"): "cow:vache goat:chèvre mouse:souris tortoise:tortue hen:poule frog:grenouille bee:abeille "
    "ant:fourmi spider:araignée snail:limace",
    ("place", "m"): "field:champ bridge:pont garden:jardin path:chemin desert:désert lake:lac tunnel:tunnel park:parc "
    "swamp:marais stream:ruisseau",
    ("place", "f"): "street:rue road:route river:rivière forest:forêt square:place valley:vallée mountain:montagne "
    "beach:plage courtyard:cour plain:plaine",
}
FRENCH = {english: french for nouns in _NOUNS.values() for english, french in _pairs(nouns).items()}
GENDER = {english: gender for (_, gender), nouns in _NOUNS.items() for english in _pairs(nouns)}
ANIMALS = tuple(noun for (kind, _), nouns in _NOUNS.items() if kind == "animal" for noun in _pairs(nouns))
PLACES = tuple(noun for (kind, _), nouns in _NOUNS.items() if kind == "place" for noun in _pairs(nouns))

# An adjective's two forms, masculine and feminine.
OF_ANIMALS = _pairs(
    "tired:fatigué/fatiguée hungry:affamé/affamée thirsty:assoiffé/assoiffée sick:malade/malade "
    "sleepy:endormi/endormie lazy:paresseux/paresseuse nervous:nerveux/nerveuse sad:triste/triste"
)
OF_PLACES = _pairs(
    "wide:large/large narrow:étroit/étroite deep:profond/profonde long:long/longue muddy:boueux/boueuse "
    "dark:sombre/sombre dangerous:dangereux/dangereuse crowded:bondé/bondée"
)
ADJECTIVES = {"animal": tuple(OF_ANIMALS), "place": tuple(OF_PLACES)}
COLOURS = _pairs(
    "black:noir/noire white:blanc/blanche brown:brun/brune grey:gris/grise green:vert/verte red:rouge/rouge"
)
FORMS = {**OF_ANIMALS, **OF_PLACES, **COLOURS}

VERBS = _pairs("cross:traversé reach:atteint explore:exploré leave:quitté find:trouvé")
ACTS = _pairs("sees:voit follows:suit hears:entend likes:aime knows:connaît")  # in the present
