"""`rigctl bundle`: fill a folder with everything that rigs install, for rigs without a network; or verify one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from rigctl.cli.common import (
    SUDO_QUESTION,
    AskBecomeOpt,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    ask_secret,
    console,
    emit_json,
)
from rigctl.cli.watching import REFRESH_HZ, watching
from rigctl.errors import ExitCode

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from rich.console import Console

    from rigctl.bundling import Manifest
    from rigctl.bundling.make import BundleOutcome, BundleProgress

_EXAMPLE = "Example: rigctl bundle /mnt/disk/bundle --from rig1 -i ./inventory"

FolderArg = Annotated[Path, typer.Argument(metavar="DIR", help="The bundle's folder.")]
FromOpt = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="RIG",
        help="The rig through which packages are found: same system, with a network.",
        show_default="the first of RIGS",
    ),
]
KernelOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel", metavar="RELEASE", help="Headers for this kernel too, as `uname -r` says it; may be repeated."
    ),
]
VerifyOpt = Annotated[bool, typer.Option("--verify", help="Only compare every file of DIR with its manifest.")]


def register(app: typer.Typer) -> None:
    """Add `bundle` to the app."""
    app.command("bundle", epilog=_EXAMPLE)(bundle)


def bundle(
    folder: FolderArg,
    rigs: RigsArg = "all",
    source: FromOpt = "",
    kernel: KernelOpt = None,
    verify: VerifyOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    inventory: InventoryOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Fill a folder with drivers, CUDA, PyTorch, gpu-burn and packages, for rigs without a network.

    Exit code: 0 the bundle is whole, 1 --verify found damage, 2 wrong words or inventory, 3 it could not be filled.
    """
    if verify:
        raise typer.Exit(_verify(folder, as_json=as_json))
    from rigctl.bundling import BundleOptions, make_bundle  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.bundling.make import BundleProgress  # noqa: PLC0415

    options = BundleOptions(
        folder=folder,
        inventory=inventory,
        rigs=rigs,
        source=source,
        kernels=tuple(kernel or ()),
        become_password=ask_secret(SUDO_QUESTION) if ask_become_pass else None,
    )
    progress = BundleProgress()
    with _watch(progress, console):
        outcome = make_bundle(options, progress)
    if as_json:
        emit_json({**outcome.model_dump(mode="json"), "exit_code": int(ExitCode.OK)})
    else:
        sys.stdout.write("\n".join(_lines(outcome)) + "\n")


def _verify(folder: Path, *, as_json: bool) -> ExitCode:
    from rigctl.bundling import damages, read_manifest  # noqa: PLC0415 - as above
    from rigctl.bundling.make import size_words  # noqa: PLC0415

    manifest = read_manifest(folder)
    found = [{"path": file.path, "what": what} for file, what in damages(folder, manifest)]
    code = ExitCode.FAILED if found else ExitCode.OK
    if as_json:
        emit_json(
            {
                "folder": str(folder),
                "files": len(manifest.files),
                "size": manifest.size,
                "manifest_sha256": manifest.sha256,
                "damages": found,
                "exit_code": int(code),
            }
        )
        return code
    for one in found:
        sys.stdout.write(f"{one['path']} {one['what']}\n")
    if found:
        sys.stdout.write(f"{len(found)} of {len(manifest.files)} files are damaged; do: rigctl bundle {folder}\n")
    else:
        sys.stdout.write(f"whole: {len(manifest.files)} files, {size_words(manifest.size)}\n")
    return code


def _lines(outcome: BundleOutcome) -> list[str]:
    from rigctl.bundling.make import size_words  # noqa: PLC0415 - as above

    sizes = f"{size_words(outcome.size)}, {size_words(outcome.fetched)} of it new"
    return [
        *_contents(outcome.manifest),
        f"{outcome.folder}: {outcome.files} files, {sizes}; manifest {outcome.manifest_sha256[:16]}",
        f"do: set base_offline_bundle: {Path(outcome.folder).absolute()} for the rigs, then rigctl provision",
    ]


def _contents(manifest: Manifest) -> list[str]:
    platform = manifest.platform
    said = [f"for {platform.id} {platform.version} {platform.architecture}, Python {platform.python}"]
    for driver in manifest.drivers:
        kernels = f", headers of {', '.join(driver.kernels)}" if driver.kernels else ""
        said.append(f"  driver {driver.driver} ({driver.flavour}, from {driver.source}{kernels})")
    said += [f"  CUDA {toolkit.version}" for toolkit in manifest.toolkits]
    said += [f"  PyTorch {torch.version}+{torch.build}, {len(torch.files)} wheels" for torch in manifest.torch]
    said += [f"  gpu-burn {source.commit[:7]}" for source in manifest.gpu_burn]
    return [*said, f"  {', '.join(manifest.system.packages)}"]


def _watch(progress: BundleProgress, to: Console) -> AbstractContextManager[None]:
    return watching(to, lambda: _table(progress), lambda ended: _write_lines(progress, to, ended))


def _table(progress: BundleProgress) -> Table:
    from rigctl.bundling.make import size_words  # noqa: PLC0415 - as above

    drawn = Table.grid(padding=(0, 2, 0, 0))
    so_far = f"{size_words(progress.done)} of {size_words(progress.total)}" if progress.total else ""
    drawn.add_row(progress.stage, so_far)
    return drawn


def _write_lines(progress: BundleProgress, to: Console, ended: threading.Event) -> None:
    written, last = 0, False
    while not last:
        last = ended.wait(1 / REFRESH_HZ)
        for note in progress.notes[written:]:
            to.print(note, markup=False, soft_wrap=True)
            written += 1
