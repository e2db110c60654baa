#!/bin/sh
# Makes the Python modules beside the .proto files of src/lastcall/adapters/cri/api and src/lastcall/adapters/csi/api.
# The generators are those of the oldest protobuf that pyproject.toml allows: generated code refuses a runtime that is
# older than its generator, and accepts newer ones up to the next but one major release.
set -eu
cd "$(dirname "$0")/../src"

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check grpcio-tools==1.73.1 protobuf==6.31.1 grpclib==0.4.9

# A proto is named by its path from src, so that what is generated imports lastcall.adapters.cri.api.api_pb2.
for proto in lastcall/adapters/cri/api/*.proto lastcall/adapters/csi/api/*.proto; do
    PATH="$venv/bin:$PATH" "$venv/bin/python" -m grpc_tools.protoc --proto_path=. \
        --python_out=. --pyi_out=. --grpclib_python_out=. "$proto"
done
