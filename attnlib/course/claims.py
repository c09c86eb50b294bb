"""The ledger: sentences about attention that one reads everywhere, and what becomes of them when they are run.

A claim has a verdict, the lessons that show it (in a cell tagged ``claim-N``) and a test that keeps it shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.course.lessons import LESSONS

__all__ = ["CLAIMS", "Claim", "as_markdown"]


@dataclass(frozen=True)
class Claim:
    """A sentence, what is true of it, where it is shown, and the test that holds it."""

    number: int
    sentence: str
    verdict: str
    lessons: tuple[str, ...]
    test: str


CLAIMS = (
    Claim(
        1,
        "The Gaussian kernel is exp(‖x − x′‖² / h).",
        "Wrong: the minus sign is lost, and the farthest point would count most.",
        ("01",),
        "tests/test_claims.py::test_claim_1_a_lost_sign_makes_weight_grow_with_distance",
    ),
    Claim(
        2,
        "Kernel regression needs no assumption.",
        "None on the form. Bandwidth and smoothness decide everything.",
        ("01",),
        "tests/test_claims.py::test_claim_2_bandwidth_and_smoothness_decide",
    ),
    Claim(
        3,
        "Attention is Nadaraya–Watson regression.",
        "Exactly, as softmax of a score times values. With a symmetric kernel only if W_Q W_Kᵀ is symmetric, as with "
        "one matrix for both, and with a Gaussian only up to the lengths of the keys.",
        ("02", "06"),
        "tests/test_claims.py::test_claim_3_same_function_but_a_kernel_only_with_one_matrix",
    ),
    Claim(
        4,
        "exp(q · k) is a Gaussian kernel.",
        "Among keys of one length, and after dividing by the sum; otherwise long keys win.",
        ("02",),
        "tests/test_claims.py::test_claim_4_dot_product_is_gaussian_only_for_keys_of_one_length",
    ),
    Claim(
        5,
        "A_i = Σ_i exp(q_i k_iᵀ) / Σ_j exp(q_j k_jᵀ) · v_i.",
        "Wrong indices: the query stays at i while the key runs over j. As printed, no row is an average.",
        ("06",),
        "tests/test_claims.py::test_claim_5_wrong_indices_give_rows_that_are_not_averages",
    ),
    Claim(
        6,
        "The dot product of two d-vectors has variance n.",
        "The variance is d, the dimension. The number of keys n plays no part.",
        ("03",),
        "tests/test_claims.py::test_claim_6_variance_is_the_dimension_not_the_number_of_keys",
    ),
    Claim(
        7,
        "Scale by √d_model.",
        "By √d_head, the root of the length of the vectors that meet in the dot product.",
        ("03", "07"),
        "tests/test_claims.py::test_claim_7_the_scale_is_that_of_the_head",
    ),
    Claim(
        8,
        "There is little theory behind dividing by √d.",
        "Variances add, and the Jacobian of a saturated softmax vanishes: both derived, both measured, the second "
        "for the median query.",
        ("03",),
        "tests/test_claims.py::test_claim_8_scaling_makes_the_jacobian_independent_of_d",
    ),
    Claim(
        9,
        "A larger dot product means a smaller angle.",
        "Or a longer vector: the length of a key counts in every score, the angle only says how directions agree.",
        ("06",),
        "tests/test_claims.py::test_claim_9_a_longer_key_wins_at_a_larger_angle",
    ),
    Claim(
        10,
        "XW projects the rows of X onto the columns of W.",
        "It takes dot products with them. A projection only if the columns are orthonormal.",
        ("06",),
        "tests/test_claims.py::test_claim_10_a_projection_only_with_orthonormal_columns",
    ),
    Claim(
        11,
        "W_Q, W_K and W_V are generated dynamically for each input.",
        "They are parameters, the same for every input. What is made for each input are the weights.",
        ("06",),
        "tests/test_claims.py::test_claim_11_the_matrices_stay_and_the_weights_change",
    ),
    Claim(
        12,
        "“Key” counts how many values there are.",
        "A key is a vector that says where its value is to be found; there is one for each value.",
        ("04",),
        "tests/test_claims.py::test_claim_12_a_key_says_where_not_how_many",
    ),
    Claim(
        13,
        "Hard attention is only attention with a sharper softmax.",
        "As the temperature falls the outputs agree, and the gradient vanishes, except where two scores are nearly "
        "equal, and there it explodes.",
        ("04",),
        "tests/test_claims.py::test_claim_13_the_output_agrees_and_the_gradient_vanishes",
    ),
    Claim(
        14,
        "Self-attention is permutation invariant.",
        "Equivariant: outputs move with their inputs. Invariant only after pooling; neither under a causal mask.",
        ("08",),
        "tests/test_claims.py::test_claim_14_equivariant_and_invariant_only_when_pooled",
    ),
    Claim(
        15,
        "Sinusoidal codes depend only on relative position.",
        "Their inner product does. After W_Q and W_K it does not.",
        ("08",),
        "tests/test_claims.py::test_claim_15_the_distance_is_lost_after_two_matrices",
    ),
    Claim(
        16,
        "PE(pos + k) is a linear function of PE(pos).",
        "True: one rotation for each pair of columns, the same for every position.",
        ("08",),
        "tests/test_claims.py::test_claim_16_a_step_is_one_rotation",
    ),
    Claim(
        17,
        "Multiply the scores by a 0/1 triangle to mask the future.",
        "That leaks: a score of 0 has the weight e⁰ = 1 before dividing.",
        ("09",),
        "tests/test_claims.py::test_claim_17_a_score_of_zero_is_not_hidden",
    ),
    Claim(
        18,
        "−1e9 is as good as −∞.",
        "Mostly, in float32. In float16 it overflows, and a row with nothing left becomes uniform.",
        ("09",),
        "tests/test_claims.py::test_claim_18_a_large_number_is_not_infinity",
    ),
    Claim(
        19,
        "To predict word 4 the decoder may look at words 1–3 only, so the diagonal is masked.",
        "Inputs are shifted right: the row that predicts word 4 is that of word 3, and the diagonal stays open.",
        ("11",),
        "tests/test_claims.py::test_claim_19_the_shift_hides_and_the_diagonal_does_not",
    ),
    Claim(
        20,
        "More heads cost more.",
        "At one d_model, the same parameters and the same multiplications. The number of weights grows.",
        ("07",),
        "tests/test_claims.py::test_claim_20_heads_share_out_the_same_multiplications",
    ),
    Claim(
        21,
        "Each head learns a different relation.",
        "Sometimes. Found out by taking heads away: some can go at no cost, and roles differ from seed to seed.",
        ("07", "13"),
        "tests/test_claims.py::test_claim_21_some_heads_can_go",
    ),
    Claim(
        22,
        "For “it”, attention to *animal* and *street* is about 0.5 each.",
        "Before training every word has about its even share. After it, no encoder head of three translators tells "
        "the two nouns apart: the pronoun is settled in the decoder.",
        ("13",),
        "tests/test_claims.py::test_claim_22_before_training_a_word_has_its_even_share",
    ),
    Claim(
        23,
        "Attention weights explain the prediction.",
        "A weight says what was read, not what it changed. Cut it, and cut a control: large weights may do nothing, "
        "and what decides may stand in no picture.",
        ("13",),
        "tests/test_claims.py::test_claim_23_all_the_weight_and_no_effect",
    ),
    Claim(
        24,
        "Attention trains orders of magnitude faster than an RNN.",
        "On a CPU about as fast as torch's LSTM, slower for long sequences, several times faster than a Python loop "
        "over cells. What is shorter by orders of magnitude is the chain of steps that must wait for each other.",
        ("05",),
        "tests/test_claims.py::test_claim_24_a_short_chain_and_more_operations",
    ),
    Claim(
        25,
        "Any two positions are one step apart.",
        "In one layer yes, for a weight for every pair, unless they are computed in blocks.",
        ("05", "14"),
        "tests/test_claims.py::test_claim_25_every_pair_in_one_layer_at_a_weight_a_pair",
    ),
    Claim(
        26,
        "A recurrent model forgets the start of the sentence.",
        "An untrained one does. A trained one keeps best what is written first: the end when it writes backwards, the "
        "start when it copies. With attention, all.",
        ("05",),
        "tests/test_claims.py::test_claim_26_forgetting_is_a_setting_of_the_gates",
    ),
    Claim(
        27,
        "The decoder needs the whole target at inference.",
        "In training it is given the whole target, since that is known. When it writes, it is given its own last "
        "token, and a cache holds what it needs of those before.",
        ("14",),
        "tests/test_claims.py::test_claim_27_one_token_at_a_time_gives_the_logits_of_all_at_once",
    ),
    Claim(
        28,
        "Without √d the gradients vanish.",
        "For the median query they do. Their mean grows, carried by the few queries that are torn between two keys.",
        ("03",),
        "tests/test_claims.py::test_claim_28_the_median_query_is_stuck_and_the_mean_grows",
    ),
    Claim(
        29,
        "Attention saves computation.",
        "Soft attention reads everything, and weighs most of it with little. A hard choice saves the reading, and "
        "still compares all scores.",
        ("04",),
        "tests/test_claims.py::test_claim_29_only_a_choice_saves_reading",
    ),
    Claim(
        30,
        "Attention ignores the order because each word is handled alone.",
        "Every output reads every input. What loses the order is the sum, which has none.",
        ("08",),
        "tests/test_claims.py::test_claim_30_every_output_reads_every_input",
    ),
    Claim(
        31,
        "Several queries into one (K, V) is multi-head attention.",
        "It is multi-query attention: all heads average the same values. In multi-head attention each has its own.",
        ("07",),
        "tests/test_claims.py::test_claim_31_one_key_and_value_for_all_is_multi_query",
    ),
    Claim(
        32,
        "Mask the future with the transposed lower triangle.",
        "With queries in rows it shows the future and hides the past: the first row sees all, the last only itself.",
        ("09",),
        "tests/test_claims.py::test_claim_32_the_transposed_triangle_shows_the_future",
    ),
    Claim(
        33,
        "Multi-head attention is a grouped convolution or a grouped linear layer.",
        "A group reads its own piece of each row. A head reads the whole row; only what comes out is cut.",
        ("07",),
        "tests/test_claims.py::test_claim_33_a_head_reads_the_whole_row",
    ),
    Claim(
        34,
        "In the sinusoidal code, i is the dimension.",
        "i counts pairs. Read as the column, sine and cosine turn at two speeds, and the inner product depends on "
        "more than the distance.",
        ("08",),
        "tests/test_claims.py::test_claim_34_i_counts_pairs",
    ),
    Claim(
        35,
        "QKᵀ is in substance XXᵀ.",
        "XXᵀ is symmetric, and among rows of one length every word picks itself. Two matrices make a question.",
        ("06",),
        "tests/test_claims.py::test_claim_35_without_matrices_every_word_picks_itself",
    ),
    Claim(
        36,
        "Small weights need no attention.",
        "Their sum can be most of the weight, and read the digits by itself. Whether they may go is to be measured.",
        ("20",),
        "tests/test_claims.py::test_claim_36_the_small_weights_are_most_of_the_weight",
    ),
    Claim(
        37,
        "The code of every position is unique.",
        "Yes. Its first pair nearly repeats after 710 steps; all pairs together do not.",
        ("08",),
        "tests/test_claims.py::test_claim_37_no_two_codes_are_near_though_the_first_pair_comes_round",
    ),
    Claim(
        38,
        "Attention solves long-range dependence.",
        "Within the lengths of training. Beyond them even three places back is lost, with codes and turns never seen; "
        "and without any code the weight is diluted, as the lead that a key needs grows with the logarithm.",
        ("08", "20"),
        "tests/test_claims.py::test_claim_38_training_on_short_sentences_leaves_far_places_untouched",
    ),
    Claim(
        39,
        "A mixture of half *animal* and half *street* resolves *it*.",
        "The same mixture comes with both answers: no encoder head of three translators changes it by more than a few "
        "per cent when the adjective, and with it the pronoun, is another.",
        ("13",),
        "tests/test_claims.py::test_claim_39_the_mixture_stays_when_the_answer_changes",
    ),
    Claim(
        40,
        "More heads are more expressive.",
        "Beyond one average, yes. At one d_model the rank of each head's scores falls as there are more.",
        ("07",),
        "tests/test_claims.py::test_claim_40_the_rank_of_a_head_falls_with_their_number",
    ),
    Claim(
        41,
        "Normalisation keeps deep stacks from collapsing.",
        "By itself it does not: after three layers of normalised attention all rows are one. The residual does.",
        ("10",),
        "tests/test_claims.py::test_claim_41_the_residual_keeps_rows_apart_and_the_norm_alone_does_not",
    ),
    Claim(
        42,
        "BERT began pretraining and fine-tuning.",
        "GPT-1 did both four months before, and others had fine-tuned pretrained language models before that.",
        ("16",),
        "tests/test_claims.py::test_claim_42_gpt_was_published_before_bert",
    ),
    Claim(
        43,
        "BERT is an encoder, GPT is a decoder.",
        "The same layer; GPT runs it under a causal mask, and without that it is an encoder.",
        ("16",),
        "tests/test_claims.py::test_claim_43_the_mask_alone_makes_a_gpt",
    ),
    Claim(
        44,
        "GPT-2 showed few-shot learning.",
        "Mostly zero-shot: two of its eight tasks put examples into the prompt. GPT-3 was measured by their number.",
        ("19",),
        "tests/test_claims.py::test_claim_44_two_of_eight_tasks_had_examples",
    ),
    Claim(
        45,
        "ALBERT is more efficient than BERT.",
        "It has a tenth of the parameters, and computes as much: its layers are shared, not saved.",
        ("17",),
        "tests/test_claims.py::test_claim_45_shared_layers_save_parameters_and_no_operations",
    ),
    Claim(
        46,
        "Sparse attention overcomes n².",
        "Only if the scores that it leaves out are never computed. A mask over all scores saves nothing.",
        ("20",),
        "tests/test_claims.py::test_claim_46_a_mask_saves_no_score_and_a_pattern_does",
    ),
    Claim(
        47,
        "Vision Transformers beat convolutions.",
        "After training on hundreds of millions of pictures, as its paper says. With 100 to 1,400 digits the "
        "convolution of equal size is ahead, and an untrained kernel, too.",
        ("21",),
        "tests/test_claims.py::test_claim_47_with_few_pictures_the_convolution_is_ahead",
    ),
    Claim(
        48,
        "CLIP understands combinations.",
        "Ours did in part: of the combinations that it had not seen it named some mostly and others never, a quarter "
        "to a half by which were left out; the colour alone gives a quarter. Where it may choose captions of other "
        "colours only, it looks nearly right, and the colour alone is wholly right.",
        ("22",),
        "tests/test_claims.py::test_claim_48_new_combinations_are_named_no_better_than_by_their_colour",
    ),
    Claim(
        49,
        "T5 unifies all tasks.",
        "In form: any question can be asked. The one tried here, made of two that were trained, was not done.",
        ("18",),
        "tests/test_claims.py::test_claim_49_the_form_takes_any_question_and_each_task_must_be_learned",
    ),
    Claim(
        50,
        "In-context learning is gradient descent, or kernel regression.",
        "One head became kernel regression, and without its softmax one gradient step. Three layers answered nearly "
        "as ridge regression does, as whatever is nearly right must, but weighed the examples otherwise.",
        ("19",),
        "tests/test_claims.py::test_claim_50_a_softmax_head_is_a_kernel_and_a_linear_head_a_step",
    ),
    Claim(
        51,
        "Attention is what makes Transformers slow.",
        "In work it is the smaller part of a layer until the text is six times as long as a row is wide. A kernel "
        "that keeps all weights takes more time than that, a fused one about its share.",
        ("23",),
        "tests/test_claims.py::test_claim_51_attention_is_half_of_the_work_at_six_widths",
    ),
)


def as_markdown() -> str:
    """The ledger as a page, with links from ``notebooks/``.

    >>> as_markdown().splitlines()[0]
    '# Claims about attention, run'
    """
    head = [
        "# Claims about attention, run",
        "",
        "Sentences that are widely repeated, and what becomes of them. Each is shown in a lesson and held by a "
        "test; a number that is missing belongs to a lesson that is still being written.",
        "",
        "| # | one reads | what is true | shown in | held by |",
        "| ---: | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *map(_row, CLAIMS)]) + "\n"


def _row(claim: Claim) -> str:
    files = {lesson.number: lesson.file for lesson in LESSONS}
    shown = ", ".join(f"[{n}]({files[n]}.ipynb)" for n in claim.lessons)
    path, test = claim.test.split("::")
    return f"| {claim.number} | {claim.sentence} | {claim.verdict} | {shown} | [{test}](../{path}) |"
