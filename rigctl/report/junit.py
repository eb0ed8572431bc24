"""A record as JUnit XML: one suite per rig, so that a CI server shows rigs as it shows tests.

It is valid by both schemas in wide use, Apache Ant's (windyroad/JUnit-Schema) and Jenkins' (xunit-plugin,
junit-10.xsd). A `fail` is a failure, an `error` an error, `skip` and `blind` are skipped with their reason; `warn` and
`waived` count as passed, as they do in the exit code, and stand in the suite's output.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rigctl.model.verdict import Verdict
from rigctl.report.summary import rig_counts, verdicts
from rigctl.report.text import counts, figure, moment, plain, seconds_between, word

if TYPE_CHECKING:
    from rigctl.model.verdict import CheckVerdict, Record, RigRecord

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(record: Record) -> str:
    """Return the XML document, with a newline at its end."""
    root = ET.Element("testsuites")
    for number, rig in enumerate(record.rigs):
        root.append(_suite(number, record, rig))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(number: int, record: Record, rig: RigRecord) -> ET.Element:
    own = verdicts(rig)
    kinds = [v.verdict for v in own]
    suite = ET.Element(
        "testsuite",
        {
            "name": _text(rig.name),
            "package": f"rigctl.{record.kind}",
            "id": str(number),
            "timestamp": f"{moment(record.started_at):%Y-%m-%dT%H:%M:%S}",
            "hostname": _text(rig.name),
            "tests": str(len(own)),
            "failures": str(kinds.count(Verdict.FAIL)),
            "errors": str(kinds.count(Verdict.ERROR)),
            "skipped": str(kinds.count(Verdict.SKIP) + kinds.count(Verdict.BLIND)),
            "time": f"{seconds_between(record.started_at, record.ended_at):.1f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(record, rig):
        ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    for verdict in own:
        suite.append(_case(rig, verdict))
    ET.SubElement(suite, "system-out").text = _output(rig)
    ET.SubElement(suite, "system-err").text = ""
    return suite


def _properties(record: Record, rig: RigRecord) -> list[tuple[str, str]]:
    simulated = "unknown" if rig.simulated is None else "yes" if rig.simulated else "no"
    return [
        ("run_id", record.run_id),
        ("profile", record.profile),
        ("rig_class", rig.rig_class),
        ("simulated", simulated),
        ("rigctl_version", record.rigctl_version),
        ("left", rig.left),
    ]


def _case(rig: RigRecord, verdict: CheckVerdict) -> ET.Element:
    name = f"{verdict.check}[{verdict.subject}]"
    subject = verdict.check.partition(".")[0]
    case = ET.Element("testcase", {"name": _text(name), "classname": _text(f"{rig.name}.{subject}"), "time": "0"})
    message = _text(verdict.reason)
    if verdict.verdict in (Verdict.FAIL, Verdict.ERROR):
        tag = "failure" if verdict.verdict is Verdict.FAIL else "error"
        ET.SubElement(case, tag, {"type": _text(verdict.check), "message": message}).text = _detail(verdict)
    elif verdict.verdict in (Verdict.SKIP, Verdict.BLIND):
        ET.SubElement(case, "skipped", {"message": f"{word(verdict.verdict)}: {message}"})
    return case


def _detail(verdict: CheckVerdict) -> str:
    lines = [
        ("seen", verdict.reason),
        ("expected", figure(verdict.expected, verdict.unit)),
        ("found", figure(verdict.found, verdict.unit)),
        ("limit from", verdict.source),
        ("do", verdict.fix),
        ("follows from", verdict.caused_by or ""),
    ]
    return "\n".join(f"{label}: {_text(value)}" for label, value in lines if value)


def _output(rig: RigRecord) -> str:
    lines = [counts(rig_counts(rig))]
    soft = [v for v in verdicts(rig) if v.verdict in (Verdict.WARN, Verdict.WAIVED)]
    lines += [f"{word(v.verdict)} {_text(v.key)}: {_text(v.reason)}" for v in soft]
    lines += [f"note: {_text(note)}" for note in rig.notes]
    return "\n".join(lines)


def _text(value: str) -> str:
    return _NOT_XML.sub("\ufffd", plain(value))
