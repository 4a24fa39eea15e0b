"""Files of utterances under names that tell which model wrote them."""

from conftest import make_case, make_record

from speechmeter.api.scoring import score_files, system_name
from speechmeter.core.utterances import Utterance, write_utterances
from speechmeter.store.run_dir import RunWriter


def test_a_file_among_the_artifacts_of_a_run_is_called_by_its_case(tmp_path):
    case = make_case("small")
    with RunWriter(tmp_path / "accuracy") as store:
        store.begin("models: [small]\n")
        store.append(make_record(case))
    path = tmp_path / "accuracy/artifacts" / case.id / "utterances.jsonl"
    write_utterances(path, [Utterance(name="a", duration_s=1.0, time_s=0.1, reference="one", output="one")])
    elsewhere = tmp_path / "theirs.jsonl"
    elsewhere.write_bytes(path.read_bytes())
    assert system_name(path) == "accuracy: small · cpu · 1 s × 1"
    assert list(score_files([path, elsewhere]).records) == ["accuracy: small · cpu · 1 s × 1", str(elsewhere)]
