from typing import Literal

from pydantic import BaseModel

from pydantic_ai import Agent


class Report(BaseModel):
    city: str
    sky: Literal["sun", "rain"]


agent = Agent("openai:gpt-5.2", output_type=Report)
print(agent.run_sync("Report the weather in Oslo.").output.sky)
