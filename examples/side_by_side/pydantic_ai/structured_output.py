from typing import Literal

from pydantic import BaseModel

from pydantic_ai import Agent


class Report(BaseModel):
    city: str
    sky: Literal["sun", "rain"]


print(Agent("openai:gpt-5.2", output_type=Report).run_sync("Report the weather in Oslo.").output.sky)
