"""The manifests of examples/live fit together, and the Deployment runs a command that tutti accepts."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import yaml

from tests.support.paths import EXAMPLES
from tutti.cli.inspect.leader_pod import _leader_pod, _PodObject
from tutti.cli.main import cli

LIVE = EXAMPLES / "live"


def objects(name: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a file by kind and name."""
    documents = yaml.safe_load_all((LIVE / name).read_text("utf-8"))
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in documents}


@pytest.mark.parametrize("name", sorted(path.name for path in LIVE.glob("*.yaml")))
def test_every_file_has_objects_and_a_place_in_the_readme(name: str) -> None:
    assert all(each["apiVersion"] and each["metadata"]["name"] for each in objects(name).values())
    assert f"`{name}`" in (LIVE / "README.md").read_text("utf-8")


def test_the_deployment_fits_the_rights_and_the_options() -> None:
    deployment = objects("deployment.yaml")["Deployment/tutti-scheduler"]
    account = objects("rbac.yaml")["ServiceAccount/tutti-scheduler"]
    template = deployment["spec"]["template"]
    assert deployment["metadata"]["namespace"] == account["metadata"]["namespace"]
    assert template["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert deployment["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]

    (container,) = template["spec"]["containers"]
    name, *options = container["args"]
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    with command.make_context(name, options) as context:
        assert context.params["host"] == "0.0.0.0"
        assert container["ports"] == [{"name": "http", "containerPort": context.params["port"]}]
        assert context.params["lease"] == "kube-system/tutti-scheduler"
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}


def test_inspect_finds_the_port_of_the_deployment() -> None:
    template = objects("deployment.yaml")["Deployment/tutti-scheduler"]["spec"]["template"]
    pod = template | {"metadata": {"name": "tutti-scheduler-x", "namespace": "kube-system"}}
    assert _leader_pod(msgspec.convert(pod, _PodObject)) == ("kube-system/tutti-scheduler-x", 10271, False)


def test_the_image_has_everything_that_the_package_is_built_from() -> None:
    lines = (LIVE / "Containerfile").read_text("utf-8").splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    project = (EXAMPLES.parent / "pyproject.toml").read_text("utf-8")
    files = re.findall(r'"([^"]+)"', " ".join(re.findall(r"^(?:readme|license-files) = .*$", project, re.MULTILINE)))
    assert copied == {"pyproject.toml", "src", *files}
