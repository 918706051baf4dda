#!/usr/bin/env bash
# Builds llama.cpp's own server, tiny models for it, and litellm's proxy into ./peers (git-ignored). About six minutes on two
# cores, once. Needs uv, a C++ compiler and make or ninja. Nothing here touches the project's own environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
peers="$PWD/peers"
tools=(uv run --isolated --frozen --only-group peers)
mkdir -p "$peers"

families=(
    "qwen2 Qwen-Qwen2.5-7B-Instruct"
    "llama-bpe meta-llama-Llama-3.1-8B-Instruct"
    "gemma-4 google-gemma-4-31B-it"
)

if [ ! -x "$peers/llama-server" ] || [ ! -f "$peers/gemma-4.gguf" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    uvx pip download --no-deps --no-binary=llama-cpp-python --dest "$work" 'llama-cpp-python>=0.3.36,<0.4'
    tar xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
    source=$(echo "$work"/llama_cpp_python-*/vendor/llama.cpp)
    for pair in "${families[@]}"; do
        read -r family template <<<"$pair"
        cp "$source/models/templates/$template.jinja" "$peers/$family.jinja"
        "${tools[@]}" python tests/peers/make_vocabulary_model.py "$source/models/ggml-vocab-$family.gguf" "$peers/$family.gguf"
    done
fi

if [ ! -x "$peers/llama-server" ]; then
    # One run for both steps: each run has an environment of its own, and the second step needs the cmake of the first.
    "${tools[@]}" bash -euc '
        cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
            -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_BUILD_WEBUI=OFF
        cmake --build "$2" --target llama-server -j "$(getconf _NPROCESSORS_ONLN)"
    ' cmake "$source" "$work/build"
    cp "$source/models/templates/Qwen-Qwen2.5-7B-Instruct.jinja" "$peers/chat.jinja"
    cp "$work/build/bin/llama-server" "$peers/llama-server"
fi

"${tools[@]}" python tests/peers/make_model.py "$peers/text.gguf"
"${tools[@]}" python tests/peers/make_model.py "$peers/tool.gguf" tool

if [ ! -x "$peers/litellm-proxy/bin/litellm" ]; then
    uv venv "$peers/litellm-proxy"
    uv pip install --python "$peers/litellm-proxy/bin/python" 'litellm[proxy]>=1.110,<1.111' ||
        echo "litellm's proxy could not be installed; its tests are skipped." >&2
fi
if [ ! -x "$peers/acpx/node_modules/.bin/acpx" ]; then
    npm install --silent --prefix "$peers/acpx" acpx@0.19 || echo "acpx could not be installed; its test is skipped." >&2
fi
echo "Ready: uv run pytest -m peer"
