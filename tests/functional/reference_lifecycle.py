# SPDX-License-Identifier: Apache-2.0
"""The beginning and the end of a CNF, as the fault matrix runs them.

The package has what is in the CNF's namespace, in another one, and in none. Objects of others are
beside it, which nothing may touch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import yaml
from aiohttp import web

from container_update import Options, install, terminate
from container_update.emulator.http_server import Handler
from container_update.emulator.kubernetes.api_errors import ApiError
from tests.functional.cnf import IMAGES, INSTANCE
from tests.functional.manifests import config_map, secret, workload
from tests.functional.promise import BESIDE, Expected, Running
from tests.functional.reference_surroundings import HOLD, release_finalizers
from tests.functional.reference_update import OPTIONS, Files, Lab, Reference, named
from tests.internals.core import History, Included, KubernetesCluster

Request = tuple[str, str]
"""A package and a namespace."""

_ENV = """
env:
- name: SETTING
  valueFrom: {configMapKeyRef: {name: cm, key: setting}}
- name: TOKEN
  valueFrom: {secretKeyRef: {name: sec, key: token}}
"""
_ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account}\n"
_ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE-role}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""
_CLAIM = f"""\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data-s-0, finalizers: [{HOLD}]}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"""
_CLAIMED = """
volumeClaimTemplates:
- metadata: {name: data}
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
_SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: w}
spec: {selector: {app: w}, ports: [{name: http, port: 80}]}
"""


def _files(image: str) -> Files:
    far = secret("far, namespace: NAMESPACE-beside", token="far")
    return {
        "account": _ACCOUNT,
        "role": _ROLE,
        "far": far,
        "claim": _CLAIM,
        "sec": secret("sec", token="good"),
        "cm": config_map("cm", setting="good"),
        "service": _SERVICE,
        "deployment": workload("Deployment", "w", container=_ENV, replicas=2),
        "stateful": workload("StatefulSet", "s", container=_ENV, spec=_CLAIMED, image=image),
    }


FILES = _files(IMAGES[0])
FAILING = _files("bad:missing")
OF_OTHERS = {"others": config_map("others", a="b"), "bystander": workload("Deployment", "b")}


def _expected(*, is_there: bool) -> Expected:
    def there(data: dict[str, str]) -> dict[str, str] | None:
        return data if is_there else None

    env = {"SETTING": "good", "TOKEN": "good"}
    return Expected(
        {
            ("ConfigMap", "others"): {"a": "b"},
            ("ConfigMap", f"{BESIDE}others"): {"a": "b"},
            ("ClusterRole", f"{BESIDE}others"): {},
            ("ServiceAccount", "account"): there({}),
            ("ClusterRole", f"{BESIDE}role"): there({}),
            ("Secret", f"{BESIDE}far"): there({"token": "far"}),
            ("PersistentVolumeClaim", "data-s-0"): there({}),
            ("Secret", "sec"): there({"token": "good"}),
            ("ConfigMap", "cm"): there({"setting": "good"}),
        },
        {
            ("Deployment", "b"): Running(IMAGES[0], {}),
            ("Deployment", "w"): Running(IMAGES[0], env, pods=2) if is_there else None,
            ("StatefulSet", "s"): Running(IMAGES[0], env) if is_there else None,
        },
        serves={"w": ("Deployment", "w")} if is_there else {},
    )


THERE, NOT_THERE = _expected(is_there=True), _expected(is_there=False)


@dataclass(frozen=True)
class ReferenceInstall(Reference[Request]):
    """The installation of a package."""

    def deploy(self, lab: Lab) -> str:
        namespace = lab.deploy(self.old_files)
        release_finalizers(lab, namespace)
        lab.add_namespace(f"{namespace}-beside")
        _add_others(lab.admin, namespace)
        return namespace

    def request(self, lab: Lab, namespace: str, files: Files) -> Request:
        return lab.package(named(files, namespace)), namespace

    def run(self, cluster: KubernetesCluster, request: Request, options: Options) -> None:
        package, namespace = request
        install(package, cluster, namespace=namespace, instance_id=INSTANCE, options=options)


def _add_others(admin: KubernetesCluster, namespace: str) -> None:
    for space, text in (
        (namespace, OF_OTHERS["others"]),
        (f"{namespace}-beside", OF_OTHERS["others"]),
        (namespace, OF_OTHERS["bystander"]),
        ("", _ROLE.replace("NAMESPACE-role", f"{namespace}-others")),
    ):
        body = yaml.safe_load(text)
        admin.create({**body, "metadata": {**body["metadata"], "namespace": space}})


@dataclass(frozen=True)
class ReferenceUninstall(ReferenceInstall):
    """Its end, of which nothing stays. The one that fails may not delete the ServiceAccount, which
    is the last object of the CNF's namespace."""

    def deploy(self, lab: Lab) -> str:
        namespace = super().deploy(lab)
        ReferenceInstall.run(self, lab.cluster, super().request(lab, namespace, FILES), OPTIONS)
        return namespace

    def request(self, lab: Lab, namespace: str, files: Files) -> Request:
        lab.once("kept", lambda: lab.server.middlewares.append(Keeping(lab.kept)))
        (lab.kept.add if files is FAILING else lab.kept.discard)(namespace)
        return super().request(lab, namespace, FILES)

    def run(self, cluster: KubernetesCluster, request: Request, options: Options) -> None:
        package, namespace = request
        everything = Included(data=True, shared=True)
        terminate(
            package,
            cluster,
            namespace=namespace,
            instance_id=INSTANCE,
            included=everything,
            options=options,
        )

    def untruths(self, lab: Lab, namespace: str, expected: Expected) -> list[str]:
        record = History(lab.cluster, namespace, INSTANCE).instance()
        if expected is self.new:
            return ["its history is still there"] if record else []
        return [] if record else ["its history is gone"]


@dataclass(frozen=True)
class Keeping:
    """A middleware in place of an admission webhook: some ServiceAccounts may not be deleted."""

    namespaces: set[str]

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        *_, namespace, kind, name = request.path.split("/")
        is_account = (kind, name) == ("serviceaccounts", "account")
        if request.method == "DELETE" and is_account and namespace in self.namespaces:
            raise ApiError(403, "Forbidden", "it is still used")
        return await handler(request)


INSTALL = ReferenceInstall(
    old_files={},
    ways={"done": FILES, "undone": FAILING},
    old=NOT_THERE,
    new=THERE,
    options=OPTIONS,
)
UNINSTALL = ReferenceUninstall(
    old_files={},
    ways={"done": FILES, "undone": FAILING},
    old=THERE,
    new=NOT_THERE,
    options=replace(OPTIONS, retry_seconds=2),
)
LIFECYCLE = {"install": INSTALL, "uninstall": UNINSTALL}
