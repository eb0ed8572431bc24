"""How a rig's supply can be switched from outside: what a reboot cannot mend is mended without current."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

MAC = r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ipmi(_Written):
    """The board's management controller, through ipmitool."""

    address: str = Field(min_length=1)
    user: str = Field(min_length=1)
    password: SecretStr
    interface: Literal["lanplus", "lan"] = "lanplus"


class Plug(_Written):
    """A smart plug in the rig's mains lead."""

    form: Literal["tasmota", "shelly", "shelly_gen1"]
    """`shelly`: the second generation and later ones."""
    url: str = Field(pattern=r"^https?://[^/\s]+/?$")
    """Address as the controller sees it, `http://192.0.2.101`."""
    channel: int = Field(default=0, ge=0, le=7)
    """Which relay of the device; Tasmota counts from 1 and takes 0 for the only one, Shelly counts from 0."""


class Wake(_Written):
    """Wake-on-LAN: it can switch on, and nothing else."""

    mac: str = Field(pattern=MAC)
    broadcast: str = "255.255.255.255"
    port: int = Field(default=9, gt=0, lt=2**16)


class Power(_Written):
    """`rig_power` of one rig."""

    ipmi: Ipmi | None = None
    plug: Plug | None = None
    wake: Wake | None = None

    @model_validator(mode="after")
    def _names_a_way(self) -> Power:
        if self.ipmi is None and self.plug is None and self.wake is None:
            message = "names neither ipmi, plug nor wake"
            raise ValueError(message)
        return self
