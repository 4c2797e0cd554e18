"""The NVIDIA card, asked through the driver's own library: its name, its architecture, the newest CUDA that the driver
takes, and the bandwidth of its memory. Prints one line of JSON; `--bandwidth` measures, too."""
import argparse
import ctypes
import json
import statistics
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

# Much more than a card's caches hold.
BYTES = 2 << 30
WARM, TIMES = 3, 20
MAJOR, MINOR = 75, 76
# Loads of 16 bytes by each thread, so that enough of them are on their way; threads of a block.
LOADS, THREADS = 8, 256


def kernel():
    """A kernel that reads memory once. The language is old enough for every driver; the sum is stored if it is a
    number that it never is, or the compiler would leave the loads out."""
    pace = BYTES // LOADS
    loads = "\n".join(
        f"    ld.global.v4.u32 {{%a0, %a1, %a2, %a3}}, [%from + {step * pace}];\n"
        "    xor.b32 %b0, %a0, %a1; xor.b32 %b1, %a2, %a3; xor.b32 %b0, %b0, %b1; xor.b32 %sum, %sum, %b0;"
        for step in range(LOADS)
    )
    return f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry read_all(.param .u64 source)
{{
    .reg .pred %same;
    .reg .b32 %a0, %a1, %a2, %a3, %b0, %b1, %sum, %block, %thread, %at;
    .reg .b64 %from, %offset;
    ld.param.u64 %from, [source];
    cvta.to.global.u64 %from, %from;
    mov.u32 %block, %ctaid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %at, %block, {THREADS}, %thread;
    mul.wide.u32 %offset, %at, 16;
    add.u64 %from, %from, %offset;
    mov.u32 %sum, 1;
{loads}
    setp.eq.u32 %same, %sum, 123456789;
    @%same st.global.u32 [%from], %sum;
    ret;
}}
""".encode()


class Card:
    """The first card."""

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise SystemExit("there is no driver of an NVIDIA card") from None
        self.call("cuInit", c_uint(0))
        self.device = self.get("cuDeviceGet", c_int, c_int(0))

    def call(self, function, *arguments):
        if code := getattr(self.driver, function)(*arguments):
            raise SystemExit(f"{function} gave {code}")

    def get(self, function, kind, *arguments):
        """The result of a function that writes it to its first argument."""
        result = kind()
        self.call(function, byref(result), *arguments)
        return result

    def describe(self):
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, self.device)
        major, minor = (self.get("cuDeviceGetAttribute", c_int, c_int(of), self.device).value for of in (MAJOR, MINOR))
        return {
            "name": name.value.decode(),
            "architecture": 10 * major + minor,
            # 13010 is CUDA 13.1.
            "cuda": self.get("cuDriverGetVersion", c_int).value,
        }

    def bandwidth(self):
        """Bytes a second: `read` by a kernel that reads, `copy` read and written by the driver's copy. Medians."""
        context = self.get("cuDevicePrimaryCtxRetain", c_void_p, self.device)
        self.call("cuCtxSetCurrent", context)
        source, target = (self.get("cuMemAlloc_v2", c_uint64, c_size_t(BYTES)) for _ in range(2))
        for place in (source, target):
            self.call("cuMemsetD32_v2", place, c_uint(0x5BD1E995), c_size_t(BYTES // 4))
        module = self.get("cuModuleLoadData", c_void_p, c_char_p(kernel()))
        function = self.get("cuModuleGetFunction", c_void_p, module, c_char_p(b"read_all"))
        parameters = (c_void_p * 1)(ctypes.addressof(source))
        shape = [c_uint(size) for size in (BYTES // 16 // LOADS // THREADS, 1, 1, THREADS, 1, 1, 0)]

        def read():
            self.call("cuLaunchKernel", function, *shape, c_void_p(), parameters, c_void_p())

        def copy():
            self.call("cuMemcpyDtoDAsync_v2", target, source, c_size_t(BYTES), c_void_p())

        return {"read": BYTES / self.seconds(read), "copy": 2 * BYTES / self.seconds(copy)}

    def seconds(self, work):
        start, end = (self.get("cuEventCreate", c_void_p, c_uint(0)) for _ in range(2))
        times = []
        for turn in range(WARM + TIMES):
            self.call("cuEventRecord", start, c_void_p())
            work()
            self.call("cuEventRecord", end, c_void_p())
            self.call("cuEventSynchronize", end)
            if turn >= WARM:
                times.append(self.get("cuEventElapsedTime", c_float, start, end).value / 1000)
        return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bandwidth", action="store_true")
    args = parser.parse_args()
    card = Card()
    found = card.describe()
    if args.bandwidth:
        found["bandwidth"] = card.bandwidth()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
