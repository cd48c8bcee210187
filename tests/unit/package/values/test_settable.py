"""A package built with the images and flavours of a cloud: the VNFD and the templates agree."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from container_update.model.errors import PackageError
from container_update.model.objects import Json
from container_update.package import csar, hot, samples
from container_update.package.build import build, write_metadata
from container_update.package.hot_files import base_hot
from container_update.package.lint import check
from container_update.package.values.settable import settable
from tests import packages
from tests.functional.stacks import templates

SAMPLE = samples.root() / "07-openstack-rolling" / "after"
TOP, NESTED = "BaseHOT/simple/top.yaml", "BaseHOT/simple/nested/nested_server.yaml"
BOTH = (("image", "cirros"), ("flavor", "small"))
Values = tuple[tuple[str, str], ...]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "folder"))


def package(tmp_path: Path, files: dict[str, str], vnfd: str = "") -> Path:
    """Write a package of VDU1 (and its Disk1) with these templates."""
    text = vnfd or templates.vnfd("front", "large")
    return Path(packages.write_folder(tmp_path / "p", templates.package("id", text, files)))


def built(folder: Path, values: Values) -> tuple[dict[str, str], dict[str, str]]:
    """Build the package; return its values by the VNFD, and the texts that its templates give to
    servers and volumes, by resource and property."""
    target = build(folder, folder.with_suffix(".zip"), values=values)
    with csar.open_package(str(target)) as opened:
        opened.verify()
        (flavour,) = opened.flavours
        vnfd = {f"{node}.image": text for node, text in flavour.images.items()}
        vnfd |= {f"{node}.flavor": text for node, text in flavour.compute_flavours.items()}
        body = base_hot(opened, flavour.id)
        defaults = hot.effective_parameters(body)
        found = {}
        for place, definition in hot.servers(body):
            template = body.file(place.file) if place.file else body.template
            resources = {**template["resources"], place.server or place.head: definition}
            for name, resource in resources.items():
                for what in ("image", "flavor"):
                    value = (resource.get("properties") or {}).get(what)
                    path = hot.top_parameter(body, place, value)
                    if value is not None:
                        bound = value if path is None else hot.get_at(defaults, path)
                        found[f"{name}.{what}"] = bound
        return vnfd, found


def with_defaults(shape: str) -> dict[str, str]:
    """Return templates whose top one has defaults for image and flavour."""
    files = templates.hot(shape)
    top = yaml.safe_load(files[TOP])
    top["parameters"]["image"]["default"] = "front"
    top["parameters"]["flavor"]["default"] = "large"
    return {**files, TOP: yaml.safe_dump(top)}


SHAPES = ["server", "nested", "group", "group of servers"]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_vnfd_and_the_templates_get_the_values(shape: str, tmp_path: Path) -> None:
    vnfd, found = built(package(tmp_path, with_defaults(shape)), BOTH)
    expected = {"VDU1.image": "cirros", "VDU1.flavor": "small"}
    assert vnfd == {**expected, "Disk1.image": "cirros"}
    assert found == expected


@pytest.mark.parametrize("shape", ["server", "nested", "group"])
def test_the_image_of_a_volume_is_set_too(shape: str, tmp_path: Path) -> None:
    values = (("Disk1.image", "cirros"),)
    vnfd, found = built(package(tmp_path, with_defaults(f"{shape} with volume")), values)
    assert (vnfd["Disk1.image"], vnfd["VDU1.image"]) == ("cirros", "front")
    assert found == {"Disk1.image": "cirros", "VDU1.flavor": "large"}


def edited(path: str, old: str, new: str) -> Callable[[dict[str, str]], dict[str, str]]:
    def edit(files: dict[str, str]) -> dict[str, str]:
        assert old in files[path]
        return {**files, path: files[path].replace(old, new)}

    return edit


GIVEN = "image: {get_param: image}"
FORMS = {
    "as a literal in the server": ("server", edited(TOP, GIVEN, "image: front")),
    "as a literal in the nested template": ("nested", edited(NESTED, GIVEN, "image: front")),
    "as a literal that the top template gives": ("nested", edited(TOP, GIVEN, "image: front")),
    "in the nested template's default": (
        "nested",
        lambda files: edited(NESTED, "image: {type: string}", "image: {type: string, default: a}")(
            edited(TOP, GIVEN, "")(files)
        ),
    ),
}


@pytest.mark.parametrize(("shape", "edit"), FORMS.values(), ids=FORMS.keys())
def test_an_image_is_set_where_it_is_written(
    shape: str, edit: Callable[[dict[str, str]], dict[str, str]], tmp_path: Path
) -> None:
    flat = {
        name: yaml.safe_dump(yaml.safe_load(text), default_flow_style=None)
        for name, text in templates.hot(shape).items()
    }
    folder = package(tmp_path, edit(flat))
    target = build(folder, tmp_path / "p.zip", values=(("VDU1.image", "cirros"),))
    with csar.open_package(str(target)) as opened:
        texts = "".join(opened.read(name).decode() for name in (TOP, NESTED) if opened.has(name))
    assert texts.count("cirros") == 1
    assert "front" not in texts


def test_a_value_within_a_json_parameter_is_set(tmp_path: Path) -> None:
    top = yaml.safe_load(templates.hot("server")[TOP])
    top["parameters"]["nfv"] = {"type": "json", "default": {"VDU": {"VDU1": {"flv": "large"}}}}
    top["resources"]["VDU1"]["properties"]["flavor"] = {"get_param": ["nfv", "VDU", "VDU1", "flv"]}
    vnfd, found = built(package(tmp_path, {TOP: yaml.safe_dump(top)}), (("flavor", "small"),))
    assert (vnfd["VDU1.flavor"], found["VDU1.flavor"]) == ("small", "small")


GIVERS = {
    "a parameter": {"get_param": ["nfv", "VDU1"]},
    "the top template": {"flv": "large"},
}


@pytest.mark.parametrize("giver", GIVERS.values(), ids=GIVERS.keys())
def test_a_value_within_what_a_nested_template_is_given_is_set(giver: Json, tmp_path: Path) -> None:
    top, nested = (yaml.safe_load(templates.hot("nested")[name]) for name in (TOP, NESTED))
    top["parameters"]["nfv"] = {"type": "json", "default": {"VDU1": {"flv": "large"}}}
    top["resources"]["VDU1"]["properties"]["node"] = giver
    nested["parameters"]["node"] = {"type": "json"}
    nested["resources"]["VDU1"]["properties"]["flavor"] = {"get_param": ["node", "flv"]}
    files = {TOP: yaml.safe_dump(top), NESTED: yaml.safe_dump(nested)}
    target = build(package(tmp_path, files), tmp_path / "p.zip", values=(("flavor", "small"),))
    with csar.open_package(str(target)) as opened:
        text = opened.read(TOP).decode()
    default = yaml.safe_load(text)["parameters"]["nfv"]["default"]["VDU1"]["flv"]
    assert default == ("small" if "get_param" in giver else "large")
    assert text.count("small") == 1


def test_a_json_default_that_is_written_as_text_is_refused(tmp_path: Path) -> None:
    top = yaml.safe_load(templates.hot("server")[TOP])
    top["parameters"]["nfv"] = {"type": "json", "default": '{"flavor": "large"}'}
    top["resources"]["VDU1"]["properties"]["flavor"] = {"get_param": ["nfv", "flavor"]}
    with pytest.raises(
        PackageError, match=r"parameters\.nfv\.default, found text: write it as YAML"
    ):
        built(package(tmp_path, {TOP: yaml.safe_dump(top)}), (("flavor", "small"),))


def test_templates_without_defaults_stay_as_they_are(tmp_path: Path) -> None:
    folder = package(tmp_path, templates.hot("group"))
    target = build(folder, tmp_path / "p.zip", values=BOTH)
    with csar.open_package(str(target)) as opened:
        assert opened.read(TOP) == (folder / TOP).read_bytes()
        assert opened.flavours[0].compute_flavours == {"VDU1": "small"}


def test_the_package_passes_the_check_and_the_folder_keeps_its_files(folder: Path) -> None:
    write_metadata(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    target = build(folder, folder.with_suffix(".zip"), values=BOTH)
    assert check.check(str(target)) == ()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_values_that_a_package_has_make_the_package_that_it_is(
    folder: Path, tmp_path: Path
) -> None:
    plain = build(folder, tmp_path / "plain.zip")
    with csar.open_package(str(folder)) as opened:
        values = tuple((value.name, value.text) for value in settable(opened))
    assert values
    assert build(folder, tmp_path / "set.zip", values=values).read_bytes() == plain.read_bytes()


WRONG: list[tuple[Values, str]] = [
    (
        (("size", "3"),),
        r"expected one of simple\.VDU1\.image \(front-2\.0\), simple\.VDU1\.flavor \(m1\.medium\), "
        "or the end of it, found size",
    ),
    ((("mage", "cirros"),), "found mage"),
    ((("image", ""),), "image: expected the name or id of an image or flavour"),
    ((("image", "a\nb"),), "printable"),
    ((("image", " a"),), "without spaces around"),
    ((("image", "a" * 256),), "at most 255"),
    ((("image", "a"), ("VDU1.image", "b")), r"simple\.VDU1\.image is set to a and to b"),
]


@pytest.mark.parametrize(("values", "message"), WRONG)
def test_a_wrong_value_is_refused(values: Values, message: str, folder: Path) -> None:
    target = folder.with_suffix(".zip")
    with pytest.raises(PackageError, match=message):
        build(folder, target, values=values)
    assert not target.exists()


def test_a_package_of_containers_has_nothing_to_set(tmp_path: Path) -> None:
    folder = shutil.copytree(samples.root() / "04-blue-green" / "before", tmp_path / "containers")
    with pytest.raises(PackageError, match="only packages with HEAT templates"):
        build(folder, tmp_path / "p.zip", values=BOTH)


def test_a_short_name_of_different_values_is_refused_and_full_names_are_not(
    tmp_path: Path,
) -> None:
    vnfd = templates.vnfd("front", "large").replace("{name: front}}\n", "{name: disk}}\n")
    vnfd = vnfd.replace("{name: disk}", "{name: front}", 1)  # of VDU1, Disk1 keeps the other one
    folder = package(tmp_path, with_defaults("server with volume"), vnfd)
    with pytest.raises(PackageError, match="set each of them by its own name"):
        built(folder, (("image", "cirros"),))
    vnfd_values, _ = built(folder, (("simple.VDU1.image", "a"), ("Disk1.image", "b")))
    assert (vnfd_values["VDU1.image"], vnfd_values["Disk1.image"]) == ("a", "b")


SHARED: list[tuple[Values, str]] = [
    ((("VDU1.flavor", "a"),), "set all of them, to the same text"),
    ((("VDU1.flavor", "a"), ("VDU2.flavor", "b")), "set all of them, to the same text"),
]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A package of two VDUs that have one parameter for their flavour."""
    top = templates.template({**templates.server(), **templates.server(suffix="0")})
    top["resources"]["VDU2"] = top["resources"].pop("VDU10")
    top["parameters"]["flavor"] = {"type": "string", "default": "large"}
    vnfd = templates.vnfd("front", "large", ("VDU1", "VDU2"))
    return package(tmp_path, {TOP: yaml.safe_dump(top)}, vnfd)


@pytest.mark.parametrize(("values", "message"), SHARED)
def test_vdus_with_one_parameter_get_one_value(values: Values, message: str, two: Path) -> None:
    with pytest.raises(PackageError, match=message):
        built(two, values)
    vnfd, found = built(two, (("flavor", "a"),))
    flavours = {name: text for name, text in (vnfd | found).items() if name.endswith("flavor")}
    assert flavours == {"VDU1.flavor": "a", "VDU2.flavor": "a"}
