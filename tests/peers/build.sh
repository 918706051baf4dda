#!/usr/bin/env bash
# Builds llama.cpp's own server and two tiny models into ./peers (git-ignored). About five minutes on two cores, once.
# Needs uv, a C++ compiler and make or ninja. Nothing here touches the project's own environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
peers="$PWD/peers"
tools=(uv run --isolated --frozen --only-group peers)
mkdir -p "$peers"

if [ ! -x "$peers/llama-server" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    uvx pip download --no-deps --no-binary=llama-cpp-python --dest "$work" 'llama-cpp-python>=0.3.36,<0.4'
    tar xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
    source=$(echo "$work"/llama_cpp_python-*/vendor/llama.cpp)
    "${tools[@]}" cmake -S "$source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_UI=OFF -DLLAMA_BUILD_WEBUI=OFF
    "${tools[@]}" cmake --build "$work/build" --target llama-server -j "$(getconf _NPROCESSORS_ONLN)"
    cp "$source/models/templates/Qwen-Qwen2.5-7B-Instruct.jinja" "$peers/chat.jinja"
    cp "$work/build/bin/llama-server" "$peers/llama-server"
fi

"${tools[@]}" python tests/peers/make_model.py "$peers/text.gguf"
"${tools[@]}" python tests/peers/make_model.py "$peers/tool.gguf" tool
echo "Ready: uv run pytest -m peer"
