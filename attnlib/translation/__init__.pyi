# What this folder offers, and loads when it is first used, for whatever reads types.

from attnlib.data.corpus import CORPORA as CORPORA
from attnlib.data.corpus import Corpus as Corpus
from attnlib.data.corpus import french as french
from attnlib.data.corpus import numbers as numbers
from attnlib.data.examples import Example as Example
from attnlib.data.french import because as because
from attnlib.data.french import other_gender as other_gender
from attnlib.data.numbers import english as english
from attnlib.data.numbers import german as german
from attnlib.data.numbers import number as number
from attnlib.training.label_smoothing import smoothed_cross_entropy as smoothed_cross_entropy
from attnlib.training.label_smoothing import smoothing_floor as smoothing_floor
from attnlib.translation.memory import TranslationMemory as TranslationMemory
from attnlib.translation.memory import letter_pieces as letter_pieces
from attnlib.translation.model import loss as loss
from attnlib.translation.model import recipe as recipe
from attnlib.translation.model import translate as translate
from attnlib.translation.model import translator as translator
from attnlib.translation.quality import bleu as bleu
from attnlib.translation.quality import exact_match as exact_match
from attnlib.translation.quality import text_scores as text_scores
from attnlib.translation.saved import Vocabularies as Vocabularies
from attnlib.translation.saved import open_translator as open_translator
from attnlib.translation.saved import save_translator as save_translator
from attnlib.translation.training import train_translator as train_translator

__all__: list[str]
