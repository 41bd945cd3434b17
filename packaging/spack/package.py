# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe of Weft. In a repository of recipes its place is packages/weft/package.py."""

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Weft(MesonPackage):
    """User-space multirail messaging over Ethernet: messages between processes over DPDK ports,
    RoCE NICs, shared memory and UDP sockets, with a libfabric provider for MPI."""

    homepage = "https://weft.example"
    git = "https://weft.example/weft.git"

    license("BSD-3-Clause")

    # A release adds its own line here, with the tag.
    version("main", branch="main")

    variant("dpdk", default=True, description="Raw-DPDK lanes, and the programs")
    variant("roce", default=True, description="RoCE lanes, by rdma-core")
    variant("libfabric", default=True, description="The libfabric provider for MPI, weft-mpirun")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type=("build", "run"))

    depends_on("dpdk@22.11:", when="+dpdk")
    depends_on("libpcap", when="+dpdk")
    depends_on("libmicrohttpd", when="+dpdk")
    depends_on("rdma-core", when="+roce")
    depends_on("libfabric@1.17:", when="+libfabric")

    conflicts("platform=darwin", msg="Weft is for Linux")
    conflicts("platform=windows", msg="Weft is for Linux")

    def meson_args(self):
        spec = self.spec

        def feature(name):
            return "-D%s=%s" % (name, "enabled" if spec.satisfies("+" + name) else "disabled")

        return [
            feature("dpdk"),
            feature("roce"),
            feature("libfabric"),
            # libipsec-mb, which it needs, has no recipe.
            "-Dseal=disabled",
            # Spack hides no headers of the system's, so nothing is left to the build's choice.
            "-Dprobes=disabled",
            "-Dwireshark=disabled",
            "-Ddocs=disabled",
            "-Dtests=false",
            "-Dwireshark_plugins=%s" % self.prefix.lib.wireshark.plugins,
        ]

    def setup_run_environment(self, env):
        if self.spec.satisfies("+libfabric"):
            env.append_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)
