# SPDX-License-Identifier: Apache-2.0
"""The HEAT templates of a package: which files a flavour has, and what is refused."""

from __future__ import annotations

import pytest

from container_update.model.errors import PackageError
from container_update.model.options import Options
from container_update.package import csar, hot_files
from tests.packages import write_folder

TOP = "heat_template_version: 2013-05-23\nresources: {s: {type: OS::Nova::Server}}\n"
FOLDER = {"BaseHOT/simple/top.yaml": TOP, "BaseHOT/simple/nested/more.txt": "x" * 20}


def test_the_files_of_a_flavour_are_sent_together_and_limited_together(tmp_path):
    source = write_folder(tmp_path, FOLDER)
    length = sum(map(len, FOLDER.values()))
    with csar.open_package(source, options=Options(yaml_characters=length)) as package:
        assert hot_files.base_hot(package, "simple").files == {"more.txt": "x" * 20}
    with (
        csar.open_package(source, options=Options(yaml_characters=length - 1)) as package,
        pytest.raises(PackageError) as caught,
    ):
        hot_files.base_hot(package, "simple")
    assert str(caught.value) == (
        f"BaseHOT/simple/top.yaml: expected at most {length - 1} characters in the files of "
        "BaseHOT/simple/ together (option yaml_characters), found more"
    )
