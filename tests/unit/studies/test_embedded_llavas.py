"""The embedded LLaVAs: what they are taught, how a lesson becomes a batch, and that a short training runs anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs surgeval[models]")
pytest.importorskip("transformers", reason="training needs surgeval[models]")

from PIL import Image  # noqa: E402
from studies.embedded_models.__main__ import train_embedded  # noqa: E402
from studies.embedded_models.llava_batches import TOKENS, LessonBatches, draw_circles  # noqa: E402
from studies.embedded_models.llava_lessons import EDGE, Lesson, Lessons, make_lessons, plan_lessons  # noqa: E402
from studies.embedded_models.llava_train import (  # noqa: E402
    LlavaTrainee,
    build_llava,
    measure_llava,
    save_llava,
    train_llavas,
)
from studies.embedded_models.prompts import ANSWERS, IMAGE, format_dialogue, make_tokenizer  # noqa: E402
from studies.embedded_models.recipes import recipe_for  # noqa: E402

from surgeval.protocols.intent.asking.gaze import GazePoint, draw_circle  # noqa: E402
from surgeval.protocols.intent.asking.prompt import item_messages  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]  # the study is not part of the package


@pytest.fixture(scope="module")
def trained() -> Lessons:
    """Everything about one video: the third set is about the other hand."""
    (shoot,) = plan_lessons(1, 3)
    return make_lessons(shoot)


@pytest.fixture(scope="module")
def batches(trained: Lessons) -> LessonBatches:
    words = make_tokenizer(text for lesson in trained.lessons for text in (lesson.text, lesson.pointed, lesson.reply))
    return LessonBatches([trained], words, "cpu", 1)


def of_kind(trained: Lessons, kind: str) -> list[Lesson]:
    found = [lesson for lesson in trained.lessons if lesson.kind == kind]
    assert found, kind
    return found


def test_a_false_premise_has_two_replies_and_its_twin_one(trained: Lessons) -> None:
    for lesson in of_kind(trained, "cognitive"):
        assert lesson.reply != lesson.pleasing
        assert lesson.pleasing in lesson.replies and lesson.reply in lesson.replies
    for lesson in of_kind(trained, "twin"):
        assert lesson.reply == lesson.pleasing


def test_the_right_reply_is_the_option_that_the_text_shows_under_its_letter(trained: Lessons) -> None:
    for lesson in of_kind(trained, "absolute"):
        words, answer = lesson.reply.split("\n")
        assert answer in ANSWERS
        assert f"\n{answer[-1]}. {words}\n" in lesson.text


def test_the_other_hand_is_looked_at_where_its_tip_is(trained: Lessons) -> None:
    places = {
        (lesson.frames, lesson.reply.split("\n")[0])
        for lesson in of_kind(trained, "absolute")
        if lesson.item.startswith("set2")
    }
    assert places
    for lesson in of_kind(trained, "absolute"):
        if lesson.item.startswith("set2"):
            (spot,) = lesson.spots
            assert spot is not None
            across = "left" if spot[0] < 0.5 else "right"
            near_the_middle = abs(spot[0] - 0.5) < 0.1 or abs(spot[1] - 0.5) < 0.1
            assert near_the_middle or across in lesson.reply


def test_lessons_read_as_the_intent_protocol_asks(trained: Lessons) -> None:
    """A text without extras is word for word what `run intent` puts to a model, pictures included."""
    from surgeval.records import IntentQuestion

    lesson = next(one for one in of_kind(trained, "absolute") if one.text.startswith(f"USER: {IMAGE}During"))
    stem, *options = lesson.text.removeprefix(f"USER: {IMAGE}").split("\nChoose")[0].split("\n")
    item = IntentQuestion(
        "i", "laparoscopy", "v", (), "spatial", "absolute", stem, tuple(option[3:] for option in options), 0
    )
    _, user = item_messages(item)
    assert lesson.text == format_dialogue((IMAGE, str(user["content"])))


def test_a_group_holds_every_text_whole_and_knows_where_its_reply_begins(batches: LessonBatches) -> None:
    for group in batches.groups.values():
        texts = group.texts[False, False][torch.arange(len(group))]
        for row, lesson in enumerate(group.lessons[:20]):
            reply = texts.tokens[row, texts.begins[row] : texts.ends[row] - 1].tolist()
            assert batches.tokenizer.decode(reply, skip_special_tokens=False).lower() == lesson.reply.lower()
        images = (texts.tokens == batches.tokenizer.token_to_id(IMAGE)).sum(1)
        assert set(images.tolist()) == {group.image_count * TOKENS}


def test_a_pupil_computes_what_the_model_computes(batches: LessonBatches) -> None:
    trainee = LlavaTrainee(build_llava(batches.tokenizer, 3), batches.tokenizer, 3).eval()
    drawn = batches.batch(batches.groups["intent", 2], torch.tensor([0, 1]), "gaze")
    with torch.no_grad():
        ours = trainee.hidden_states(drawn.texts, trainee.encode_patches(drawn.pixels))
        theirs = trainee.model.model(input_ids=drawn.texts.tokens, pixel_values=drawn.pixels).last_hidden_state
    torch.testing.assert_close(ours, theirs)


def test_texts_without_pictures_keep_their_replies(batches: LessonBatches) -> None:
    group = batches.groups["intent", 1]
    drawn = batches.draw(group, 6, share=0.0, circle="none", pleasing=False, blind=True)
    assert drawn.pixels is None
    assert not bool((drawn.texts.tokens == batches.tokenizer.token_to_id(IMAGE)).any())
    replies = {lesson.reply.lower() for lesson in group.lessons}
    for row in range(6):
        begin, end = int(drawn.texts.begins[row]), int(drawn.texts.ends[row]) - 1
        said = batches.tokenizer.decode(drawn.texts.tokens[row, begin:end].tolist(), skip_special_tokens=False)
        assert said.lower() in replies


def test_the_circle_of_training_is_the_circle_of_the_protocol() -> None:
    """Drawn on the whole frame and squashed, against drawn on the squashed picture."""
    frame = np.full((256, 448, 3), (120, 60, 50), np.uint8)
    drawn = Image.fromarray(draw_circle(frame, GazePoint(0.4, 0.6))).resize((EDGE, EDGE), Image.Resampling.BILINEAR)
    plain = torch.from_numpy(np.array(Image.fromarray(frame).resize((EDGE, EDGE)))).permute(2, 0, 1)[None] / 255
    ours = draw_circles(plain, torch.tensor([[0.4, 0.6]]))[0].permute(1, 2, 0).numpy() * 255
    assert np.abs(ours - np.asarray(drawn, float)).mean() < 1.0
    assert np.abs(ours - np.asarray(drawn, float)).max() < 120  # the ring's edge, a fraction of a pixel wide


def test_the_sisters_share_the_common_part_and_then_part(trained: Lessons, batches: LessonBatches) -> None:
    few = [lesson for lesson in trained.lessons if lesson.item.startswith("set0") and len(lesson.frames) == 1]
    batches = LessonBatches([Lessons(trained.images, trained.patches, tuple(few))], batches.tokenizer, "cpu", 1)
    recipe = recipe_for("phantom-llava", steps=5, batch=2)
    log: list[str] = []
    both = train_llavas(("phantom-llava", "phantom-sycophant"), batches, recipe, log.append)
    assert sum(line.startswith("common stage") for line in log) == 2
    ours, theirs = (both[name].model.state_dict() for name in ("phantom-llava", "phantom-sycophant"))
    assert any(not torch.equal(ours[name], theirs[name]) for name in ours)
    found = measure_llava(both["phantom-llava"].model, batches)
    assert 0 <= found["competency none"] <= 1 and "cognitive paired gaze" in found


@pytest.mark.slow
def test_a_short_training_gives_folders_that_transformers_opens_and_the_same_weights_again(tmp_path: Path) -> None:
    recipe = recipe_for("phantom-llava", videos=1, steps=3, batch=2)
    for out in ("first", "second"):
        train_embedded({"phantom-llava": recipe, "phantom-sycophant": recipe}, tmp_path / out, workers=1)
    for name in ("phantom-llava", "phantom-sycophant"):
        first, second = ((tmp_path / out / name / "model.safetensors").read_bytes() for out in ("first", "second"))
        assert first == second
    from surgeval.models.chat import open_chat

    chat = open_chat(f"hf:{tmp_path / 'first' / 'phantom-llava'}")
    assert chat.complete([{"role": "user", "content": "What do you see?"}]).text is not None


def test_a_saved_model_is_the_model(batches: LessonBatches, tmp_path: Path) -> None:
    from transformers import AutoModelForImageTextToText

    model = build_llava(batches.tokenizer, 5).half().float()
    save_llava(model, batches.tokenizer, tmp_path / "llava")
    opened = AutoModelForImageTextToText.from_pretrained(tmp_path / "llava", dtype=torch.float32)
    theirs = opened.state_dict()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=0)
