"""`rigctl certificate`: what is stated, that it is signed, and that whatever differs is named."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from rigctl.certificate import html, pdf, signing
from rigctl.certificate.verify import verify
from rigctl.cli.app import main
from rigctl.errors import UsageError
from rigctl.model.certificate import Statement
from rigctl.model.verdict import Verdict
from tests.report.build_run import UUIDS, build_run

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Place:
    """A run, a key that is trusted, one that is not, and a certificate."""

    folder: Path
    run_id: str

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def signers(self) -> Path:
        return self.folder / "signers"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def file(self, suffix: str) -> Path:
        return self.out / f"certificate-rig1-{self.run_id}{suffix}"

    def verify(self, *words: str, file: str = ".json") -> int:
        asked = [str(self.file(file)), "--signers", str(self.signers), "--runs", str(self.runs), *words]
        return main(["certificate", "verify", *asked])


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("certificate")
    run = build_run(folder / "runs", faulty=False)
    place = Place(folder, run.run_id)
    key = make_key(folder / "key")
    public = key.with_suffix(".pub").read_text(encoding="utf-8")
    place.signers.write_text(f"lab@example.org {public}", encoding="utf-8")
    words = ["--runs", str(place.runs), "--key", str(key), "--output", str(place.out)]
    assert main(["certificate", "create", "rig1", *words]) == 0
    return place


@pytest.fixture
def place(made: Place, tmp_path: Path) -> Place:
    """A copy that a test may change."""
    shutil.copytree(made.folder, tmp_path / "copy")
    return Place(tmp_path / "copy", made.run_id)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def stated(place: Place) -> Statement:
    return Statement.model_validate_json(place.file(".json").read_bytes())


def test_it_states_what_was_tested_by_which_version_with_which_parts(made: Place) -> None:
    statement = stated(made)
    assert (statement.rig, statement.run_id, statement.measured_by) == ("rig1", made.run_id, "0.1.0")
    assert tuple(card.uuid for card in statement.cards) == UUIDS["rig1"]
    record = json.loads((made.runs / made.run_id / "record.json").read_text(encoding="utf-8"))
    judged = next(rig for rig in record["rigs"] if rig["name"] == "rig1")
    assert [one.check for one in statement.checks] == [one["check"] for one in judged["verdicts"]]
    assert {"run.json", "record.json", "rig1/facts.json"} <= set(statement.evidence)
    assert not {name for name in statement.evidence if "telemetry" in name}


@pytest.mark.parametrize("suffix", [".json", ".json.sig", ".html", ".pdf"])
def test_it_is_verified_by_any_of_its_files(made: Place, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert made.verify(file=suffix) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"ok: rig1 accepted by run {made.run_id}")
    assert "signed by lab@example.org (SHA256:" in out
    assert "the run's files are those of then" in out


def test_openssh_alone_verifies_it(made: Place) -> None:
    words = ["-Y", "verify", "-f", made.signers, "-I", "lab@example.org", "-n", signing.NAMESPACE]
    subprocess.run(
        ["ssh-keygen", *words, "-s", made.file(".json.sig")],
        input=made.file(".json").read_bytes(),
        check=True,
        capture_output=True,
    )


def test_it_says_where_the_run_is_not_there_to_compare(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(place.runs)
    assert place.verify() == 0
    assert "the run itself is not here" in capsys.readouterr().out


def test_a_changed_statement_is_named_value_by_value(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    change(place.file(".json"), UUIDS["rig1"][0], "GPU-00000000-0000-0000-0000-00000000beef")
    assert place.verify() == 1
    err = capsys.readouterr().err
    assert f"DIFFERS certificate-rig1-{place.run_id}.json: is not what was signed" in err
    assert f'cards[0].uuid: "GPU-00000000-0000-0000-0000-00000000beef" in the statement, "{UUIDS["rig1"][0]}"' in err


def test_a_changed_page_is_named_by_its_line(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    change(place.file(".html"), "<code>GPU-6f0c1d9e", "<code>GPU-ffffffff")
    assert place.verify() == 1
    err = capsys.readouterr().err
    assert "is not the statement's: line " in err
    assert "GPU-ffffffff" in err
    assert "instead of" in err


def test_a_changed_pdf_a_missing_page_and_a_changed_run_are_named(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.file(".pdf").write_bytes(place.file(".pdf").read_bytes() + b"%\n")
    place.file(".html").unlink()
    change(place.runs / place.run_id / "record.json", '"pass"', '"warn"')
    (place.runs / place.run_id / "rig1" / "facts.json").unlink()
    assert place.verify("--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert told["signer"]["name"] == "lab@example.org"
    named = {one["file"].removeprefix(f"certificate-rig1-{place.run_id}"): one["what"] for one in told["findings"]}
    assert named == {
        ".html": "is not there",
        ".pdf": "is not the statement's: the file was changed after signing",
        f"{place.run_id}/record.json": "is not what was certified",
        f"{place.run_id}/rig1/facts.json": "is not in the run any more",
    }


def test_another_key_s_signature_is_a_finding(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    other = make_key(place.folder / "other")
    place.file(".json.sig").write_bytes(signing.sign(place.file(".json").read_bytes(), other))
    assert place.verify() == 1
    err = capsys.readouterr().err
    assert "signed by an unknown key SHA256:" in err
    assert f'namespaces="{signing.NAMESPACE}"' in err


def test_a_signature_for_something_else_does_not_count(place: Place) -> None:
    file = place.folder / "note"
    file.write_bytes(place.file(".json").read_bytes())
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", place.folder / "key", "-n", "git", file],
        check=True,
        capture_output=True,
    )
    shutil.copy(place.folder / "note.sig", place.file(".json.sig"))
    found = verify(place.file(".json"), place.signers, place.runs)
    assert found.signer is None
    assert "is not what was signed" in found.findings[0].what


def test_a_key_that_was_not_valid_then_does_not_count(place: Place) -> None:
    name, key = place.signers.read_text(encoding="utf-8").split(" ", 1)
    place.signers.write_text(f'{name} valid-before="20200101" {key}', encoding="utf-8")
    found = verify(place.file(".json"), place.signers, place.runs)
    assert found.signer is not None
    assert found.signer.principal is None
    assert "unknown key" in found.findings[0].what


def test_equal_statements_give_equal_documents(made: Place) -> None:
    statement = stated(made)
    assert html.render(statement) == made.file(".html").read_bytes()
    assert pdf.render(statement) == made.file(".pdf").read_bytes()


def test_nothing_that_a_rig_says_becomes_markup_or_breaks_the_pdf(made: Place) -> None:
    nasty = stated(made).model_copy(
        update={"rig_class": "</script><script>alert(1)</script>", "machine": (("Board", "≤ 5 °C … 猫 \x1b[31m"),)}
    )
    page = html.render(nasty).decode()
    assert "<script>alert" not in page
    assert page.count("</script>") == 1
    assert pdf.render(nasty).startswith(b"%PDF-")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rig9"], "burnt and accepted 'rig9'"),
        (["rig1", "--run", "2020-01-01T0000Z-0000"], "there is no run"),
        (["rig1", "--key", "absent"], "there is no key absent"),
    ],
)
def test_bad_input_to_create(
    made: Place, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["certificate", "create", "--runs", str(made.runs), "--output", str(tmp_path / "out")]
    asked += [] if "--key" in words else ["--key", str(made.folder / "key")]
    assert main([*asked, *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_rig_that_failed_gets_none(tmp_path: Path, made: Place, capsys: pytest.CaptureFixture[str]) -> None:
    run = build_run(tmp_path / "runs", unreached=True)
    words = ["--runs", str(tmp_path / "runs"), "--key", str(made.folder / "key"), "--output", str(tmp_path / "out")]
    for rig in ("rig2", "rig3"):
        assert main(["certificate", "create", rig, "--run", run.run_id, *words]) == 1
        assert f"{rig} was not accepted by run {run.run_id}" in capsys.readouterr().err
        assert main(["certificate", "create", rig, *words]) == 2
        capsys.readouterr()
    assert not (tmp_path / "out").exists()


def test_bad_input_to_verify(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certificate", "verify", str(tmp_path)]) == 2
    assert "holds 0 certificates" in capsys.readouterr().err
    assert main(["certificate", "verify", str(tmp_path / "x.txt")]) == 2
    assert "is no file of a certificate" in capsys.readouterr().err
    assert main(["certificate", "verify", str(place.file(".json")), "--signers", str(tmp_path / "none")]) == 2
    assert "there is no file of allowed signers" in capsys.readouterr().err
    newer = json.loads(place.file(".json").read_bytes()) | {"schema_version": 2}
    place.file(".json").write_text(json.dumps(newer), encoding="utf-8")
    assert place.verify() == 2
    assert "is of a newer version (2)" in capsys.readouterr().err
    place.file(".json").write_text("[]", encoding="utf-8")
    assert place.verify() == 2
    assert "is no statement of a certificate" in capsys.readouterr().err
    place.file(".json").unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        verify(place.file(".html"), place.signers, place.runs)


def test_what_was_not_tested_is_told(made: Place) -> None:
    statement = stated(made)
    left_out = [one for one in statement.checks if one.verdict in (Verdict.BLIND, Verdict.SKIP)]
    assert left_out
    page = made.file(".html").read_text(encoding="utf-8")
    for one in left_out:
        assert f"<li>{one.check} ({one.subject}): " in page
