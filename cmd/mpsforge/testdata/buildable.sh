# Makes the folder a PyTorch that has one source file, and is built as PyTorch is.
echo 2.9.1 > version.txt
echo licence > LICENSE
mkdir c10 torch
echo 'raise ImportError("the checkout is imported")' > torch/__init__.py
echo 'int c10() { return 0; }' > c10/c10.cpp
printf 'path = .git\n' > .gitmodules
cat > setup.py <<'END'
python_min_version = (3, 0, 0)
import os, subprocess, sys, zipfile
if "build" in sys.argv:
    os.makedirs("build", exist_ok=True)
    defines = [f"-D{k}={v}" for k, v in os.environ.items() if k.startswith("CMAKE_")]
    sys.exit(subprocess.call(["cmake", "-GNinja", *defines, ".."], cwd="build"))
name = os.path.join(sys.argv[sys.argv.index("--dist-dir") + 1], "torch-2.9.1-py3-none-any.whl")
info = "torch-2.9.1.dist-info/"
with zipfile.ZipFile(name, "w") as wheel:
    wheel.writestr("torch/__init__.py", "__version__ = '2.9.1'\nclass backends:\n    class mps:\n        is_built = staticmethod(lambda: False)\n")
    wheel.write("build/lib/libtorch_cpu.so", "torch/lib/libtorch_cpu.so")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
END
cat > CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18 FATAL_ERROR)
project(Torch CXX)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_library(torch_cpu SHARED c10/c10.cpp)
END
