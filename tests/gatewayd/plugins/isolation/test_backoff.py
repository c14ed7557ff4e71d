from gatewayd.plugins.isolation.backoff import MAX_PAUSE_SECONDS, STEADY_SECONDS, StartPause


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_pause_doubles_while_processes_end_soon() -> None:
    clock = Clock()
    pause = StartPause(clock)
    waited = []
    for _ in range(9):
        pause.start()
        pause.end()
        waited.append(pause.left)
        clock.now += pause.left
        assert pause.left == 0.0
    assert waited == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]
    assert pause.ended == 9


def test_a_process_that_lived_for_long_is_started_again_at_once() -> None:
    clock = Clock()
    pause = StartPause(clock)
    for _ in range(4):
        pause.start()
        pause.end()
    clock.now += pause.left
    pause.start()
    clock.now += STEADY_SECONDS
    pause.end()
    assert (pause.ended, pause.left) == (1, 0.0)
