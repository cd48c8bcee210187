# SPDX-License-Identifier: Apache-2.0
"""The bodies of requests (SOL003 and SOL005): the supported attributes; others are refused."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    WithJsonSchema,
    model_validator,
)

from container_update.engine.goals import request_schema
from container_update.model import schema as schemas
from container_update.model.objects import Json
from container_update.model.requests import DEF_FILES
from container_update.vnfm.notify.outbox import FILTER, PACKAGE_FILTER
from container_update.vnfm.store.rows import PACKAGES

_LINE: Any = {"max_length": 255, "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}
Text = Annotated[str, Field(min_length=1, **_LINE)]
Line = Annotated[str, Field(**_LINE)]
Prose = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]
Map = dict[str, Any]


_LONGEST_GRACE = 24 * 3600
"""Seconds that a graceful termination may wait."""


_BODY = schemas.Plain(most=20_000)
"""The thread that checks a body answers no other request meanwhile."""


def _writable(value: Any) -> Any:
    """Refuse what no response could hold: too many values or levels, lone surrogates, numbers like
    NaN."""
    if (wrong := _BODY.first_violation(value)) is not None:
        raise ValueError(str(wrong))
    json.dumps(value, allow_nan=False)
    return value


class RequestBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _can_be_written(cls, value: Any) -> Any:
        return _writable(value)

    def as_sent(self) -> Json:
        """Return the attributes that the client gave, and those alone."""
        return self.model_dump(exclude_unset=True)


def _checked_by(schema: schemas.Schema, *path: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if (wrong := schema.first_violation(value, path)) is not None:
            raise ValueError(str(wrong))
        return value

    return BeforeValidator(check)


_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def json_schema(schema: schemas.Schema) -> Json:
    """Return one of our schemas as JSON Schema, for the readers of the OpenAPI document."""
    described = {"description": schema.description}
    if isinstance(schema, schemas.AnyOf):
        return {**described, "anyOf": [json_schema(each) for each in schema.alternatives]}
    if isinstance(schema, schemas.Number):
        bounds = {"minimum": schema.least, "maximum": schema.most}
        return {**described, "type": "integer" if schema.is_whole else "number", **bounds}
    return {**described, "type": _TYPES[schema.type], **_more(schema)}


def _more(schema: schemas.Schema) -> Json:
    """Return what JSON Schema says about what is in a value."""
    more: dict[str, Any] = {}
    if isinstance(schema, schemas.Text):
        more["pattern"] = f"^{schema.pattern}$"
        more |= {} if schema.longest is None else {"maxLength": schema.longest}
    elif isinstance(schema, schemas.ListOf):
        more |= {"items": json_schema(schema.item), "minItems": schema.least}
    elif isinstance(schema, schemas.Empty):
        more["maxProperties"] = 0
    elif isinstance(schema, schemas.MapOf) and schema.value:
        value = schemas.or_null(schema.value) if schema.nullable else schema.value
        more["additionalProperties"] = json_schema(value)
    elif isinstance(schema, schemas.Fields):
        more["properties"] = {name: json_schema(each) for name, each in schema.fields.items()}
        more["required"] = [name for name in schema.fields if name in schema.required]
        if schema.whole:
            more |= {"title": schema.whole, "additionalProperties": False}
    return more


def _shown_as(schema: schemas.Schema) -> WithJsonSchema:
    return WithJsonSchema(json_schema(schema))


_NAMESPACE = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
INSTANTIATE_PARAMS = schemas.Fields(
    {
        DEF_FILES: schemas.ListOf(
            request_schema.PATH,
            description="a list of paths in the package, or URLs, of what the VNF is to be made of",
        ),
        "namespace": schemas.Text("the name of a namespace", _NAMESPACE, 63),
    },
    description="a JSON object; besides, parameters of a stack's templates",
    has_nulls=False,
)
"""additionalParams of an instantiation: what Tacker reads of them; others are kept."""

VimConnection = Annotated[
    Map, _checked_by(request_schema.VIM_CONNECTION), _shown_as(request_schema.VIM_CONNECTION)
]
KubernetesParams = Annotated[Map, _checked_by(INSTANTIATE_PARAMS), _shown_as(INSTANTIATE_PARAMS)]
Url = Annotated[str, _checked_by(request_schema.URL, "auth_url"), _shown_as(request_schema.URL)]
AuthCred = Annotated[
    Map, _checked_by(request_schema.ACCESS, "auth_cred"), _shown_as(request_schema.ACCESS)
]
Filter = Annotated[Map, _checked_by(FILTER, "filter"), _shown_as(FILTER)]
PackageFilter = Annotated[Map, _checked_by(PACKAGE_FILTER, "filter"), _shown_as(PACKAGE_FILTER)]
ChangeVnfPkg = Annotated[Map, BeforeValidator(_writable), _shown_as(request_schema.CHANGE_REQUEST)]
"""ChangeCurrentVnfPkgRequest (SOL003, 5.5.2.11a); checked when the VIM of the instance is known."""


class CreateVnf(RequestBody):
    """CreateVnfRequest (SOL003, 5.5.2.3)."""

    vnfdId: Text
    vnfInstanceName: Text | None = None
    vnfInstanceDescription: Prose | None = None
    metadata: Map | None = None


class InstantiateVnf(RequestBody):
    """InstantiateVnfRequest (SOL003, 5.5.2.4)."""

    flavourId: Text
    instantiationLevelId: Text | None = None
    localizationLanguage: Text | None = None
    additionalParams: KubernetesParams = {}
    extVirtualLinks: list[Map] = []
    extManagedVirtualLinks: list[Map] = []
    extensions: Map | None = None
    vnfConfigurableProperties: Map | None = None


class InstantiateVnfV1(InstantiateVnf):
    """The same, in v1: VIMs as a list."""

    vimConnectionInfo: list[VimConnection] = []


class InstantiateVnfV2(InstantiateVnf):
    """The same, in v2: VIMs as a map."""

    vimConnectionInfo: dict[Text, VimConnection] = {}


class TerminateParams(BaseModel):
    """additionalParams of a termination; others are kept for the Mgmt Drivers."""

    model_config = ConfigDict(extra="allow")

    delete_data: StrictBool = False
    delete_shared: StrictBool = False


class TerminateVnf(RequestBody):
    """TerminateVnfRequest (SOL003, 5.5.2.8)."""

    terminationType: Literal["GRACEFUL", "FORCEFUL"]
    gracefulTerminationTimeout: Annotated[int, Field(ge=0, le=_LONGEST_GRACE)] | None = None
    additionalParams: TerminateParams | None = None

    @model_validator(mode="after")
    def _has_a_use_for_the_timeout(self) -> TerminateVnf:
        if self.terminationType == "FORCEFUL" and self.gracefulTerminationTimeout is not None:
            raise ValueError(
                "gracefulTerminationTimeout: is for terminationType GRACEFUL only: leave it out"
            )
        return self


class HealParams(BaseModel):
    """additionalParams of a heal, as Tacker reads them; others are kept for the Mgmt Drivers."""

    model_config = ConfigDict(extra="allow")

    all: bool = False


class HealVnf(RequestBody):
    """HealVnfRequest (SOL002 and SOL003, 5.5.2.9)."""

    vnfcInstanceId: Annotated[list[Text], Field(min_length=1)] | None = None
    cause: Text | None = None
    additionalParams: HealParams | None = None


class ScaleVnf(RequestBody):
    """ScaleVnfRequest (SOL003, 5.5.2.5)."""

    type: Literal["SCALE_OUT", "SCALE_IN"]
    aspectId: Text
    numberOfSteps: Annotated[int, Field(ge=1, le=10_000)] = 1
    additionalParams: Map | None = None


class VnfcModification(RequestBody):
    """VnfcInfoModifications (SOL003, 5.5.3.24)."""

    id: Text
    vnfcConfigurableProperties: Map


class ModifyVnf(RequestBody):
    """VnfInfoModificationRequest (SOL003, 5.5.2.12)."""

    vnfInstanceName: Text | None = None
    vnfInstanceDescription: Prose | None = None
    vnfdId: Text | None = None
    vnfConfigurableProperties: Map = {}
    metadata: Map = {}
    extensions: Map = {}
    vnfcInfoModifications: list[VnfcModification] | None = None
    vimConnectionInfoDeleteIds: list[Text] | None = None
    """Ids of entries of vimConnectionInfo; in v2, where SOL003 has null for it, their names."""


class ModifyVnfV1(ModifyVnf):
    """The same, in v1."""

    vnfPkgId: Text | None = None
    vimConnectionInfo: list[VimConnection] | None = None


class ModifyVnfV2(ModifyVnf):
    """The same, in v2."""

    vimConnectionInfo: dict[Text, VimConnection | None] | None = None


class _PlanOfModification(RequestBody):
    """A plan of a modification."""

    operation: Literal["MODIFY_INFO"]


class PlanV1(_PlanOfModification):
    """A request for the plan of a request, an extension of SOL003: v1 only has modifications."""

    request: ModifyVnfV1


class _PlanOfModificationV2(_PlanOfModification):
    request: ModifyVnfV2


class _PlanOfChange(RequestBody):
    operation: Literal["CHANGE_VNFPKG"]
    request: ChangeVnfPkg


PlanV2 = Annotated[_PlanOfModificationV2 | _PlanOfChange, Field(discriminator="operation")]
"""The same, in v2."""


class _NewBatch(RequestBody):
    vnfInstanceIds: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]],
        Field(min_length=1, max_length=1000),
    ]
    waveSize: Annotated[int, Field(ge=1, le=100)]
    maxFailures: Annotated[int, Field(ge=0, le=1000)]
    why: Line = ""


class NewBatchV1(PlanV1, _NewBatch):
    """The same request to many instances, an extension of SOL003."""


class _BatchOfModification(_PlanOfModificationV2, _NewBatch):
    pass


class _BatchOfChange(_PlanOfChange, _NewBatch):
    pass


NewBatchV2 = Annotated[_BatchOfModification | _BatchOfChange, Field(discriminator="operation")]
"""The same, in v2."""


class CancelOperation(RequestBody):
    """CancelMode (SOL003, 5.5.2.14); both mean the same here."""

    cancelMode: Literal["GRACEFUL", "FORCEFUL"]


class CreatePackage(RequestBody):
    """CreateVnfPkgInfoRequest (SOL005, 9.5.2.2)."""

    userDefinedData: Map = {}


class ModifyPackage(RequestBody):
    """VnfPkgInfoModifications (SOL005, 9.5.2.3)."""

    operationalState: Literal["ENABLED", "DISABLED"] | None = None
    userDefinedData: Map = {}


class UploadFromUri(RequestBody):
    """UploadVnfPackageFromUriRequest (SOL005, 9.5.2.4)."""

    addressInformation: Annotated[str, Field(min_length=1, max_length=2048)]
    userName: Text | None = None
    password: Text | None = Field(default=None, repr=False)


class VimAttributes(RequestBody):
    """A VIM of Tacker's legacy API."""

    name: Text | None = None
    description: Prose | None = None
    tenant_id: Text | None = None
    auth_url: Url | None = None
    auth_cred: AuthCred = Field(default={}, repr=False)
    vim_project: Map | None = None
    is_default: bool | None = None
    placement_attr: Map | None = None
    extra: Map | None = None


class NewVimAttributes(VimAttributes):
    """A new VIM, with the required attributes."""

    name: Text
    auth_url: Url
    type: Literal["kubernetes", "openstack"]
    is_default: bool = False


class NewVim(RequestBody):
    """A request to register a VIM."""

    vim: NewVimAttributes


class ChangedVim(RequestBody):
    """A request to change a VIM."""

    vim: VimAttributes


class NewSubscription(RequestBody):
    """LccnSubscriptionRequest (SOL003, 5.5.2.15), as v1 has it."""

    callbackUri: Annotated[str, Field(min_length=1, max_length=2048)]
    filter: Filter | None = None
    authentication: Map | None = Field(default=None, repr=False)


class NewSubscriptionV2(NewSubscription):
    """The same, in v2."""

    verbosity: Literal["FULL", "SHORT"] = "FULL"


class NewPackageSubscription(NewSubscription):
    """PkgmSubscriptionRequest (SOL003, 10.5.2.3)."""

    filter: PackageFilter | None = None


# --- those that differ from API to API ----------------------------------------------------------

INSTANTIATE = {"v1": InstantiateVnfV1, "v2": InstantiateVnfV2}
MODIFY = {"v1": ModifyVnfV1, "v2": ModifyVnfV2}
PLAN = {"v1": PlanV1, "v2": PlanV2}
NEW_BATCH = {"v1": NewBatchV1, "v2": NewBatchV2}
NEW_SUBSCRIPTION = {
    "v1": NewSubscription,
    "v2": NewSubscriptionV2,
    PACKAGES: NewPackageSubscription,
}
