"""Kubeconfig files: merged and resolved as kubectl does it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tutti.client.access.kubeconfig import default_paths, load_kubeconfig
from tutti.exceptions import InputError

SERVER = "https://10.0.0.1:6443"


def write(folder: Path, text: str, name: str = "config") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def config(cluster: str = "", user: str = "", context: str = "") -> str:
    return f"""
apiVersion: v1
kind: Config
current-context: here
clusters:
- name: c
  cluster: {{server: "{SERVER}", {cluster}}}
users:
- name: u
  user: {{{user}}}
contexts:
- name: here
  context: {{cluster: c, user: u, {context}}}
"""


def test_the_current_context(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    path = write(tmp_path, config(f"certificate-authority-data: {data}", "token: abc", "namespace: ml"))
    access = load_kubeconfig([path])
    assert (access.server, access.namespace, access.authority, access.name) == (SERVER, "ml", b"PEM", "here")
    assert access.user.token == "abc"


def test_another_context(tmp_path: Path) -> None:
    other = "- {name: there, context: {cluster: c}}\n"
    path = write(tmp_path, config(user="token: abc") + other)
    access = load_kubeconfig([path], "there")
    assert access.user.token == ""
    assert access.namespace == "default"


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    user = "client-certificate: pki/c.crt, client-key: /abs/c.key, tokenFile: token"
    access = load_kubeconfig([write(tmp_path, config("certificate-authority: ca.crt", user))])
    assert access.authority_file == tmp_path / "ca.crt"
    assert access.user.certificate_file == tmp_path / "pki" / "c.crt"
    assert access.user.key_file == Path("/abs/c.key")
    assert access.user.token_file == tmp_path / "token"


def test_inline_data_comes_before_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"inline").decode()
    access = load_kubeconfig([write(tmp_path, config(user=f"client-key: c.key, client-key-data: {data}"))])
    assert access.user.key == b"inline"
    assert access.user.key_file is None


def test_the_first_file_decides(tmp_path: Path) -> None:
    first = write(tmp_path, "clusters:\n- {name: c, cluster: {server: https://first}}\n", "first")
    second = write(tmp_path, config(user="token: abc"), "second")
    access = load_kubeconfig([first, second])
    assert (access.server, access.user.token, access.name) == ("https://first", "abc", "here")


def test_exec(tmp_path: Path) -> None:
    command = (
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get-token, args: [a, b], "
        "env: [{name: X, value: y}], interactiveMode: IfAvailable, provideClusterInfo: true}"
    )
    access = load_kubeconfig([write(tmp_path, config(user=command))])
    found = access.user.command
    assert found is not None
    assert (found.command, found.args, found.env) == (str(tmp_path / "get-token"), ("a", "b"), {"X": "y"})
    assert found.provides_cluster_info


def test_impersonation(tmp_path: Path) -> None:
    access = load_kubeconfig([write(tmp_path, config(user="as: jane, as-groups: [dev, ops]"))])
    assert access.user.headers == {"Impersonate-User": "jane", "Impersonate-Group": ("dev", "ops")}


def test_keys_of_impersonation_are_escaped(tmp_path: Path) -> None:
    user = 'as: jane, as-user-extra: {"example.com/a%b ü": [x, y], scopes: [view]}'
    access = load_kubeconfig([write(tmp_path, config(user=user))])
    assert access.user.headers == {
        "Impersonate-User": "jane",
        "Impersonate-Extra-example.com%2Fa%25b%20%C3%BC": ("x", "y"),
        "Impersonate-Extra-scopes": ("view",),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "current-context: there is no current context: set --context"),
        ("- 1", "not a kubeconfig"),
        ("a: [", "YAML is malformed"),
        ("clusters: 7", "not a kubeconfig"),
        (config().replace("current-context: here", "current-context: gone"), "known contexts: here"),
        (config().replace("cluster: c,", "cluster: gone,"), "context here: cluster: there is no cluster 'gone'"),
        (config().replace("user: u,", "user: gone,"), "context here: user: there is no user 'gone'"),
        (config().replace(SERVER, "10.0.0.1"), "cluster c: server: must begin with https://"),
        (config("proxy-url: socks5://x"), "cluster c: proxy-url: only http:// and https://"),
        (config("certificate-authority-data: '*'"), "cluster c: certificate-authority-data: not base64"),
        (config(user="auth-provider: {name: gcp}"), "user u: auth-provider:"),
        (
            config(user="exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"),
            "user u: exec.apiVersion: client.authentication.k8s.io/v1alpha1 is not supported",
        ),
    ],
)
def test_errors_name_the_place(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        load_kubeconfig([path])
    assert str(path) in str(error.value)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        load_kubeconfig([tmp_path / "none"])


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    key = base64.b64encode(b"secret-key").decode()
    user = f"token: secret-token, password: secret-word, username: u, client-key-data: {key}"
    access = load_kubeconfig([write(tmp_path, config(user=user))])
    assert "secret" not in repr(access)


def test_default_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = write(tmp_path, "", "one"), write(tmp_path, "", "two")
    assert default_paths({"KUBECONFIG": f"{one}:{tmp_path / 'none'}:{two}"}) == [one, two]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_paths({}) == []
    (tmp_path / ".kube").mkdir()
    path = write(tmp_path / ".kube", "")
    assert default_paths({}) == [path]
