"""Makes and renews what the guard serves with. As a program: a ``RenewalRequest`` in, a ``Renewal`` out, both as JSON."""

import sys
from collections.abc import Sequence
from datetime import datetime

import msgspec

from lastcall.adapters.webhook import certificates
from lastcall.adapters.webhook.certificates import KeyPair
from lastcall.adapters.webhook.serving_material import Renewal, ServingMaterial
from lastcall.model.base import Facts, Time


class RenewalRequest(Facts, frozen=True):
    """``found`` None: nothing is there. ``path_token`` is that of new material; ``names`` are those of the certificate."""

    found: ServingMaterial | None
    path_token: str
    names: tuple[str, ...]
    now: Time


def renew_material(request: RenewalRequest) -> Renewal:
    """The material as it has to be now: a certificate for all names, in the first two thirds of its life."""
    found, names, now = request.found, request.names, request.now
    if found is None:
        material = _sign(certificates.make_authority(now), "", request.path_token, names, now)
    elif now >= _due_at(found) or not certificates.names_of(found.certificate) >= set(names):
        material = _renew(found, names, now)
    else:
        material = found
    return Renewal(material=material, due_at=_due_at(material))


def _due_at(material: ServingMaterial) -> datetime:
    return certificates.renewal_time(material.certificate)


def _renew(found: ServingMaterial, names: Sequence[str], now: datetime) -> ServingMaterial:
    """Another serving certificate; an authority that grows old is replaced too, and trusted a while longer."""
    newest = found.authorities.partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    if now < certificates.renewal_time(newest):
        authority = KeyPair(certificate=newest, key=found.authority_key)
        return _sign(authority, found.authorities.removeprefix(newest), found.path_token, names, now)
    return _sign(certificates.make_authority(now), newest, found.path_token, names, now)


def _sign(authority: KeyPair, older: str, token: str, names: Sequence[str], now: datetime) -> ServingMaterial:
    serving = certificates.make_serving_certificate(authority, names, now)
    return ServingMaterial(
        authorities=authority.certificate + older,
        authority_key=authority.key,
        certificate=serving.certificate,
        key=serving.key,
        path_token=token,
    )


def main() -> None:
    """Answers one request on standard input."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=RenewalRequest)
    sys.stdout.buffer.write(msgspec.json.encode(renew_material(request)))


if __name__ == "__main__":
    main()
