import json

import pytest
import soundfile

from speechmeter.core.errors import InputError
from speechmeter.workloads.shapes.from_list import counted, from_list, pieces
from speechmeter.workloads.shapes.table import RAW

LINES = [
    {"audio_filepath": "a.wav", "duration": 1.005, "text": "one two three", "tokens": 9},
    {"audio_filepath": "b.wav", "duration": 13.76, "text": "four", "tokens": [3, 1, 4, 1]},
    {"audio_filepath": "c.wav", "duration": 0.0649, "text": "", "tokens": 0},
    {"audio_filepath": "d.wav", "duration": 0.065, "text": "", "tokens": 0},
    {"audio_filepath": "e.wav", "duration": 2.0, "tokens": "many"},
]


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return path


@pytest.mark.parametrize(("how", "tokens"), [("field", [9, 4, 0]), ("words", [3, 1, 0]), ("characters", [13, 4, 0])])
def test_frames_come_from_seconds_and_tokens_from_the_list(listed, how, tokens):
    found = from_list(listed, counted(how))
    assert found.shapes.frames == RAW
    assert found.shapes.rows.tolist() == [[101, tokens[0]], [1376, tokens[1]], [7, tokens[2]]]
    assert (found.left_out.count, found.left_out.of) == (2, 5)
    short, untold = found.left_out.first
    assert short == ("c", "is too short: 6 frames leave none after 4× subsampling")
    assert untold[0] == "e"
    assert untold[1] == ("the list has no field `tokens`" if how == "field" else "has no text")


def cut(**fields):
    source = {"type": "file", "channels": [0], "source": "a.wav"}
    recording = {"id": "r", "sources": [source], "sampling_rate": 16_000, "duration": 5.0}
    return {"id": "c", "duration": 5.0, "supervisions": [{"text": "two words"}], "recording": recording, **fields}


def test_frames_of_features_come_before_seconds(tmp_path):
    features = {"num_frames": 498, "frame_shift": 0.01, "duration": 5.0}
    cuts = [
        cut(features=features),
        cut(features=features, duration=2.995),  # a part of the features: by their shift, halves up
        cut(features={**features, "frame_shift": 0.0125}, duration=2.0),
        cut(),
    ]
    path = tmp_path / "cuts.json"
    path.write_text(json.dumps(cuts))
    assert from_list(path, counted("words")).shapes.rows.tolist() == [[498, 2], [300, 2], [160, 2], [500, 2]]


def test_cuts_with_features_and_no_recording_are_known_for_cuts(tmp_path):
    features = {"num_frames": 498, "frame_shift": 0.01, "duration": 5.0}
    cuts = [{key: value for key, value in cut(features=features).items() if key != "recording"}]
    path = tmp_path / "cuts.json"
    path.write_text(json.dumps(cuts))
    assert from_list(path, counted("words")).shapes.rows.tolist() == [[498, 2]]


def test_cuts_whose_sound_is_in_no_file_have_shapes(tmp_path):
    faster = {"sources": [], "duration": 4.5, "transforms": [{"name": "Speed", "kwargs": {"factor": 1.1}}]}
    path = tmp_path / "cuts.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (cut(), cut(duration=4.5, recording=faster))))
    found = from_list(path, counted("words"))
    assert found.shapes.rows.tolist() == [[500, 2], [450, 2]]
    assert found.left_out.count == 0


def test_a_shift_of_its_own_makes_other_frames(listed):
    assert from_list(listed, counted("words"), shift_s=0.02).shapes.rows.tolist() == [[50, 3], [688, 1]]


def test_a_length_that_is_not_stated_is_read_from_the_file(tmp_path):
    soundfile.write(tmp_path / "a.wav", [0.0] * 24_000, 16_000)
    (tmp_path / "a.txt").write_text("two words")
    assert from_list(tmp_path, counted("words")).shapes.rows.tolist() == [[150, 2]]


def test_numbers_beyond_all_bounds_are_left_out(tmp_path):
    path = tmp_path / "set.jsonl"
    lines = [{"duration": 1e300, "tokens": 1}, {"duration": 9.0, "tokens": 2**50}, {"duration": 9.0, "tokens": 8}]
    path.write_text("".join(json.dumps({"audio_filepath": "a.wav", **line}) + "\n" for line in lines))
    found = from_list(path, counted("field"))
    assert found.shapes.rows.tolist() == [[900, 8]]
    assert [reason for _, reason in found.left_out.first] == ["has more than 1,000,000 frames or tokens"] * 2


def test_a_list_of_nothing_usable_is_refused(listed):
    listed.write_text("{}\n" + json.dumps(LINES[2]) + "\n")
    with pytest.raises(InputError, match="2 of 2 items left out"):
        from_list(listed, counted("words"), format="nemo")
    with pytest.raises(InputError, match="use one of field, words, characters"):
        counted("letters")


def test_pieces_of_a_model_are_tokens(listed, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "text").write_text("one two three four\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "char"), model_type="char", minloglevel=2
    )
    found = from_list(listed, pieces(tmp_path / "char.model"))
    whole = [len("▁one▁two▁three"), len("▁four"), 0]  # a model of characters makes a piece of each
    assert found.shapes.rows[:, 1].tolist() == whole


def test_what_is_no_model_is_refused(tmp_path):
    pytest.importorskip("sentencepiece")
    (tmp_path / "a.model").write_bytes(b"nothing of the kind")
    for name in ("a.model", "absent.model"):
        with pytest.raises(InputError, match="is not a sentencepiece model"):
            pieces(tmp_path / name)


def test_a_list_without_numbers_of_tokens_points_to_ways_of_counting(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text('{"audio_filepath": "a.wav", "duration": 2.0, "text": "one two"}\n')
    with pytest.raises(InputError, match="use `tokens: words` or `tokens: characters`"):
        from_list(path, counted("field"))
    assert from_list(path, counted("words")).shapes.rows.tolist() == [[200, 2]]
