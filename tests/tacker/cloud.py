# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack, with what Tacker's tests of VNFs of servers look for there by name."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openstack
import trustme
import yaml
from openstack.connection import Connection

from tests.tacker.lab import LabError

PROJECTS = {
    "nfv": ("nfv_user", "admin"),
    "test_tenant_1": ("test_user_1", "member"),
    "test_tenant_2": ("test_user_2", "member"),
}
"""The projects of Tacker's CI, each with its user and that user's role."""

PASSWORD = "devstack"
VIMS = {
    "nfv": ("VIM0", "local-vim.yaml"),
    "test_tenant_1": ("VIM_TEST", "local-tenant1-vim.yaml"),
    "test_tenant_2": ("VIM_DEMO", "local-tenant2-vim.yaml"),
}
"""The VIM that each project has in Tacker, and the file where the tests look for its login."""

IMAGES = ("cirros-0.5.2-x86_64-disk", "cirros-0.5.2-x86_64-disk2")
FLAVORS = {"m1.tiny": (1, 512, 1), "m1.small": (1, 2048, 20)}
"""CPUs, MiB of memory and GiB of disk."""

NETWORKS = {
    "net0": ("subnet0", "10.10.0.0/24"),
    "net1": ("subnet1", "10.10.1.0/24"),
    "net_mgmt": ("subnet_mgmt", "192.168.120.0/24"),
}
HEATS_USERS = "heat_stack_user"
"""The role of the users that Heat makes for the signals of a scaling policy."""

KEYSTONE = "http://127.0.0.1/identity"
"""Where Tacker's tests expect it."""

STACK_NAME = ('href.split("/")[7]', 'href.split("/stacks/")[1].split("/")[0]')
"""How a test reads a stack's name out of a link: it counts on Heat at ``/heat-api``, which a Heat
with a port of its own is not; and how it reads the name of any Heat's."""

PEM = "/etc/https_server/ssl/https_server.pem"
"""The certificate and key of the tests' HTTPS server."""

GONE_SECONDS = 180.0


class RealCloud:
    """The cloud of an administrator in clouds.yaml."""

    def __init__(self, administrator: str) -> None:
        self._admin = openstack.connect(cloud=administrator)
        self._auth: dict[str, Any] = self._admin.config.get_auth_args()
        self._prepare()
        self._users = {project: self._connect(project) for project in PROJECTS}
        self._known = {identity for identity, *_ in self._objects()}

    @property
    def keystone(self) -> str:
        """The address of Keystone without a version."""
        return str(self._auth["auth_url"]).rstrip("/").removesuffix("/v3")

    def tacker_conf(self) -> str:
        """Return what ``tacker.conf`` needs to check tokens with this Keystone."""
        login = {**self._login("", "", ""), **self._auth, "auth_url": f"{self.keystone}/v3"}
        login |= {"auth_type": "password", "www_authenticate_uri": login["auth_url"]}
        return "\n[keystone_authtoken]\n" + "".join(f"{k} = {v}\n" for k, v in login.items())

    def add_tacker(self, url: str) -> None:
        """Put a Tacker into Keystone's catalog, and the VIMs of all projects into that Tacker."""
        identity, kind = self._admin.identity, "nfv-orchestration"
        for old in identity.services(type=kind):
            identity.delete_service(old)
        service = identity.create_service(type=kind, name="tacker")
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(
                service_id=service.id, interface=interface, url=f"{url}/", region_id="RegionOne"
            )
        for project, connection in self._users.items():
            self._register_vim(url, project, connection)

    def _register_vim(self, url: str, project: str, connection: Connection) -> None:
        user, _ = PROJECTS[project]
        vim = {
            "type": "openstack",
            "name": VIMS[project][0],
            "auth_url": f"{self.keystone}/v3",
            "vim_project": {"name": project, "project_domain_name": "Default"},
            "auth_cred": {
                "username": user,
                "password": PASSWORD,
                "user_domain_name": "Default",
                "cert_verify": "False",
            },
            "is_default": True,
        }
        answer = connection.session.post(f"{url}/v1.0/vims", json={"vim": vim}, raise_exc=False)
        if not answer.ok:
            raise LabError(f"the VIM of {project}: {answer.status_code} {answer.text}")

    def address(self, sources: Path, pem: Path) -> None:
        """Write the logins, the address of Keystone and a certificate into Tacker's tests."""
        for project, (_, file) in VIMS.items():
            user, _ = PROJECTS[project]
            login = self._login(project, user, PASSWORD)
            login |= {"domain_name": "Default", "cert_verify": "False"}
            path = sources / "samples/tests/etc/samples" / file
            path.write_text(yaml.safe_dump({**login, "auth_url": self.keystone}))
        for file in (sources / "tacker/tests/functional").rglob("*.py"):
            text = file.read_text()
            addressed = text.replace(KEYSTONE, self.keystone).replace(PEM, str(pem))
            addressed = addressed.replace(*STACK_NAME)
            if addressed != text:
                file.write_text(addressed)

    def clean(self) -> list[str]:
        """Delete what was not there in the beginning; return what it was."""
        left: dict[str, str] = {}
        deadline = time.monotonic() + GONE_SECONDS
        while new := [each for each in self._objects() if each[0] not in self._known]:
            if time.monotonic() > deadline:
                raise LabError(f"not gone after {GONE_SECONDS} s: {[name for _, name, _ in new]}")
            stacks = [each for each in new if each[1].startswith("stack ")]
            for identity, name, delete in stacks or new:  # what a stack contains goes with it
                left[identity] = name
                _try(delete, identity)
            time.sleep(1)
        return sorted(left.values())

    def _objects(self) -> Iterator[tuple[str, str, Callable[[str], Any]]]:
        """Yield the id of each object of the tests, a name for people, and what deletes it."""
        admin = self._admin
        services = [connection.orchestration for connection in self._users.values()]
        found: tuple[tuple[str, Iterator[Any], Callable[[str], Any]], ...] = (
            *(("stack", heat.stacks(), heat.delete_stack) for heat in services),
            ("port", admin.network.ports(), admin.network.delete_port),
            ("network", admin.network.networks(), admin.network.delete_network),
            ("image", self._users["nfv"].image.images(), self._users["nfv"].image.delete_image),
            (
                "volume",
                admin.block_storage.volumes(all_projects=True),
                admin.block_storage.delete_volume,
            ),
            ("volume type", admin.block_storage.types(), admin.block_storage.delete_type),
        )
        for kind, listing, delete in found:
            of_tests = filter(self._is_of_tests, listing)
            yield from ((each.id, f"{kind} {each.name}", delete) for each in of_tests)

    def _is_of_tests(self, found: Any) -> bool:
        """Whether an object is of a project of the tests, or of none: administrators see all."""
        project = getattr(found, "project_id", None) or str(getattr(found, "links", None) or "")
        ids = [connection.current_project_id for connection in self._users.values()]
        return not project or any(each in project for each in ids)

    # --- preparing --------------------------------------------------------------------------------

    def _login(self, project: str, user: str, password: str) -> dict[str, str]:
        domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
        return {"username": user, "password": password, "project_name": project, **domains}

    def _connect(self, project: str) -> Connection:
        user, _ = PROJECTS[project]
        login = self._login(project, user, PASSWORD)
        return openstack.connect(
            auth={**login, "auth_url": f"{self.keystone}/v3"}, region_name="RegionOne"
        )

    def _prepare(self) -> None:
        admin = self._admin
        if admin.identity.find_role(HEATS_USERS) is None:
            admin.identity.create_role(name=HEATS_USERS)
        for project, (user, role) in PROJECTS.items():
            self._make_user(project, user, role)
        for name, (cpus, memory, disk) in FLAVORS.items():
            if admin.compute.find_flavor(name) is None:
                admin.compute.create_flavor(name=name, vcpus=cpus, ram=memory, disk=disk)
        for name in IMAGES:
            if admin.image.find_image(name) is None:
                admin.image.create_image(
                    name=name,
                    data=name.encode(),
                    disk_format="raw",
                    container_format="bare",
                    visibility="public",
                )
        for name, (subnet, addresses) in NETWORKS.items():
            if admin.network.find_network(name) is None:
                network = admin.network.create_network(name=name, is_shared=True)
                admin.network.create_subnet(
                    name=subnet, network_id=network.id, ip_version=4, cidr=addresses
                )

    def _make_user(self, project_name: str, user_name: str, role_name: str) -> None:
        identity = self._admin.identity
        project = identity.find_project(project_name) or identity.create_project(
            name=project_name, domain_id="default"
        )
        user = identity.find_user(user_name) or identity.create_user(
            name=user_name, password=PASSWORD, domain_id="default"
        )
        role = identity.find_role(role_name, ignore_missing=False)
        identity.assign_project_role_to_user(project, user, role)


def _try(delete: Callable[[str], Any], identity: str) -> None:
    """Delete an object; one that another one still uses is tried again."""
    with contextlib.suppress(openstack.exceptions.HttpException):
        delete(identity)


def write_certificates(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of localhost with its key, and the authority that issued it; return
    their files."""
    authority, pem = folder / "authority.crt", folder / "localhost.pem"
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(authority))
    issuer.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        str(pem)
    )
    return pem, authority
