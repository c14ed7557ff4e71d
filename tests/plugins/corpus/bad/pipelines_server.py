"""
title: For a Pipelines server
version: 0.1
"""


class Pipeline:
    def __init__(self):
        self.name = "Pipeline"

    async def on_startup(self):
        pass

    def pipe(self, user_message: str, model_id: str, messages: list, body: dict) -> str:
        return user_message
