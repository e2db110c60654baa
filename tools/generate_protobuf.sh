#!/bin/sh
# Makes src/lastcall_lab/apiserver/data/protobuf.json.gz: how kubectl's protobuf bodies are read.
#   tools/generate_protobuf.sh DIRECTORY
# DIRECTORY holds k8s.io/api and k8s.io/apimachinery, the sources of one Kubernetes release (1.36).
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
sources=$1

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check grpcio-tools==1.73.1

groups="core apps batch policy storage networking rbac coordination discovery events scheduling
        admissionregistration authentication authorization"
files=""
for group in $groups; do files="$files k8s.io/api/$group/v1/generated.proto"; done
files="$files k8s.io/api/autoscaling/v1/generated.proto k8s.io/api/autoscaling/v2/generated.proto"

cd "$sources"
# shellcheck disable=SC2086
"$venv/bin/python" -m grpc_tools.protoc --proto_path=. --include_imports --descriptor_set_out="$venv/set" $files
"$venv/bin/python" "$tools/protobuf_fields.py" "$venv/set" "$sources" \
    "$tools/../src/lastcall/lab/apiserver/data/protobuf.json.gz"
