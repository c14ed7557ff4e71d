import errno

import pytest

from gatewayd.sandbox import kernel

PR_GET_DUMPABLE = 3
NO_SUCH_CALL = 100_000


def test_what_the_kernel_returns_and_refuses() -> None:
    assert kernel.call_prctl(PR_GET_DUMPABLE) in (0, 1, 2)
    for refused in (lambda: kernel.call_prctl(-1), lambda: kernel.call_kernel(NO_SUCH_CALL, 1, None)):
        with pytest.raises(OSError, match=r"Invalid argument|not implemented") as caught:
            refused()
        assert caught.value.errno in (errno.EINVAL, errno.ENOSYS)
