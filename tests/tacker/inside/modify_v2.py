"""Instantiates and modifies a v2 instance with Tacker's own driver, which runs the scripts.

Run by Tacker's interpreter with a request in JSON: the unpacked packages, the instantiate and the
modify request, which error to inject, and how it is repaired before the next step. Prints in JSON
what Tacker keeps after each step.
"""

import json
import sys
import types
import uuid

from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config, lcm_op_occ_utils, vnfd_utils
from tacker.sol_refactored.conductor.vnflcm_driver_v2 import VnfLcmDriverV2
from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes_common

inputs = json.load(sys.stdin)
config.CONF([], project="tacker")
objects.register_all()
kubernetes_common.CHECK_INTERVAL = 0.2


PRODUCT = {
    "vnfProvider": "Company",
    "vnfProductName": "Sample VNF",
    "vnfSoftwareVersion": "1.0",
    "vnfdVersion": "1.0",
}


class Packages:
    """Stands in for the NFVO, with the packages in folders."""

    def get_vnfd(self, context, vnfd_id, all_contents=False):
        vnfd = vnfd_utils.Vnfd(vnfd_id)
        vnfd.init_from_csar_dir(inputs["packages"][vnfd_id])
        return vnfd

    def get_vnf_package_info_vnfd(self, context, vnfd_id):
        return types.SimpleNamespace(**PRODUCT)


class Instance:
    """An instance and the steps that the conductor takes with it."""

    def __init__(self, driver):
        self.driver = driver
        self.stored = objects.VnfInstanceV2(
            id=str(uuid.uuid4()),
            vnfdId=inputs["vnfdId"],
            instantiationState="NOT_INSTANTIATED",
            **PRODUCT,
        )

    def step(self, operation, request, method="process", kept=None):
        """Return what Tacker has after a step: the error, the scripts' data, the instance."""
        occurrence = lcm_op_occ_utils.new_lcmocc(self.stored.id, operation, request, "PROCESSING")
        working, kept, error = self.stored.obj_clone(), dict(kept or {}), ""
        is_change = operation == "CHANGE_VNFPKG"
        vnfd_id = request.vnfdId if is_change else working.vnfdId  # as the conductor has it
        vnfd = self.driver.nfvo_client.get_vnfd(None, vnfd_id)
        granted = objects.GrantRequestV1() if is_change else None
        if is_change:
            self.driver.change_vnfpkg_grant(granted, request, working, vnfd)
            granted.addResources = granted.addResources if "addResources" in granted else []
        if operation == "INSTANTIATE":
            working.vimConnectionInfo = request.vimConnectionInfo
            granted = objects.GrantRequestV1()
            self.driver.instantiate_grant(granted, request, working, vnfd)
        try:
            getattr(self.driver, method)(None, occurrence, working, granted, None, vnfd, kept)
            if method == "process":
                self.stored = working  # after a rollback of MODIFY_INFO the conductor does not
        except Exception as raised:  # noqa: BLE001 (it is the result)
            error = getattr(raised, "detail", None) or f"{type(raised).__name__}: {raised}"
        return {"error": error, "kept": kept, "instance": self.stored.to_dict()}


driver = VnfLcmDriverV2()
driver.nfvo_client = Packages()
instance = Instance(driver)
request = objects.InstantiateVnfRequest.from_dict(inputs["instantiate"])
steps = {"instantiate": instance.step("INSTANTIATE", request)}
if inputs["host_fails"]:

    def fail(*arguments):
        raise RuntimeError("the host failed after the update")

    driver._make_inst_info_common = fail
if inputs["change"]:
    request = objects.ChangeCurrentVnfPkgRequest.from_dict(inputs["change"])
    steps["change"] = instance.step("CHANGE_VNFPKG", request)
    print(json.dumps(steps))
    sys.exit()
request = objects.VnfInfoModificationRequest.from_dict(inputs["modify"])
steps["modify"] = instance.step("MODIFY_INFO", request)
if steps["modify"]["error"] and inputs["then"]:
    inputs["packages"].update(inputs["repaired"])
    kept = steps["modify"]["kept"]
    steps[inputs["then"]] = instance.step("MODIFY_INFO", request, inputs["then"], kept)
print(json.dumps(steps))
