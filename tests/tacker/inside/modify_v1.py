"""Modifies a v1 instance as the conductor does; prints what the database says before and after.

Run by Tacker's interpreter with the path of its configuration, the instance's id and the request.
"""

import json
import sys
import uuid

import sqlalchemy.orm
from oslo_utils import timeutils
from tacker import context, objects
from tacker.common import config
from tacker.vnflcm import vnflcm_driver

conf, instance_id, request = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
config.init(["--config-file", conf])
objects.register_all()
sqlalchemy.orm.configure_mappers()
driver = vnflcm_driver.VnfLcmDriver()  # before anything asks the database, which it sets up
admin = context.get_admin_context()


def load():
    return objects.VnfInstance.get_by_id(admin, instance_id)


before = load()
package = objects.VnfPackageVnfd(context=admin).get_vnf_package_vnfd(request["vnfdId"])
names = (
    "vnf_provider",
    "vnf_product_name",
    "vnf_software_version",
    "vnfd_version",
    "package_uuid",
    "vnfd_id",
)
occurrence = {
    "vnf_instance_id": instance_id,
    "id": str(uuid.uuid4()),
    "state_entered_time": timeutils.utcnow(),
    "operationParams": str(request),
    "tenant_id": before.tenant_id,
}
body = {
    "vnfd_id": request["vnfdId"],
    "vnf_instance_name": request["vnfInstanceName"],
    "metadata": dict(request["metadata"]),
}
error = ""
try:
    driver.modify_vnf(
        admin, occurrence, body, {name: package.get(name) for name in names}, before.vnfd_id
    )
except Exception as raised:  # noqa: BLE001 (it is the result)
    error = f"{type(raised).__name__}: {raised}"


def records(instance):
    return [
        {
            "id": each.id,
            "vdu": each.vdu_id,
            "pod": each.compute_resource.resource_id,
            "kind": each.compute_resource.vim_level_resource_type,
            "metadata": each.metadata,
        }
        for each in instance.instantiated_vnf_info.vnfc_resource_info
    ]


after = load()
print(
    json.dumps(
        {
            "error": error,
            "vnfd_id": after.vnfd_id,
            "metadata": after.vnf_metadata,
            "files": after.instantiated_vnf_info.additional_params["lcm-kubernetes-def-files"],
            "before": records(before),
            "after": records(after),
        }
    )
)
