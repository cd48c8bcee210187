# SPDX-License-Identifier: Apache-2.0
"""What Tacker says about the installed driver: run by its interpreter, with unpacked packages."""

import inspect
import json
import sys

from oslo_config import cfg
from tacker.common import driver_manager
from tacker.vnflcm import vnflcm_driver
from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import VnflcmMgmtAbstractDriver

name = "mgmt-container-update"
cfg.CONF([], project="tacker")
cfg.CONF.set_override("vnflcm_mgmt_driver", ["vnflcm_noop", name], "tacker")
host = object.__new__(vnflcm_driver.VnfLcmDriver)
host._mgmt_manager = driver_manager.DriverManager(
    "tacker.tacker.mgmt.drivers", cfg.CONF.tacker.vnflcm_mgmt_driver
)
host._mgmt_driver_hash = host._init_mgmt_driver_hash()
driver = host._mgmt_manager[name]


def trusts(package):
    artifacts = {name: {"file": "Scripts/container_update_mgmt.py"}}
    try:
        return host._check_mgmt_driver(name, artifacts, package) == name
    except Exception as error:  # noqa: BLE001 (it is the result)
        return type(error).__name__


idle = [
    each
    for each in sorted(VnflcmMgmtAbstractDriver.__abstractmethods__)
    if not each.startswith("get_")
]
for each in idle:
    parameters = inspect.signature(getattr(VnflcmMgmtAbstractDriver, each)).parameters
    given = {
        key: None
        for key, parameter in parameters.items()
        if key != "self" and parameter.kind is not parameter.VAR_KEYWORD
    }
    host._mgmt_manager.invoke(name, each, **given)
print(
    json.dumps(
        {
            "type": driver.get_type(),
            "installed": "site-packages" in inspect.getfile(type(driver)),
            "missing": sorted(type(driver).__abstractmethods__),
            "called": idle,
            "trusts": [trusts(package) for package in sys.argv[1:]],
        }
    )
)
