"""What a request says of speech, images and what else is not text, as the protos write it down.

Source: google-genai's types and what it sends to which surface.
"""

from typing import Annotated

from dragoman.simulator.apis.gemini.proto import STUDIO, VERTEX, Bytes, Fields, Int32, Message, Value, Words

_DELIVERIES = ("DELIVERY_UNSPECIFIED", "INLINE", "URI")
_RATIOS = tuple(
    f"ASPECT_RATIO_{ratio}"
    for ratio in (
        "UNSPECIFIED",
        "ONE_BY_ONE",
        "TWO_BY_THREE",
        "THREE_BY_TWO",
        "THREE_BY_FOUR",
        "FOUR_BY_THREE",
        "FOUR_BY_FIVE",
        "FIVE_BY_FOUR",
        "NINE_BY_SIXTEEN",
        "SIXTEEN_BY_NINE",
        "TWENTY_ONE_BY_NINE",
        "ONE_BY_EIGHT",
        "EIGHT_BY_ONE",
        "ONE_BY_FOUR",
        "FOUR_BY_ONE",
    )
)
_SIZES = tuple(f"IMAGE_SIZE_{size}" for size in ("UNSPECIFIED", "FIVE_TWELVE", "ONE_K", "TWO_K", "FOUR_K"))
_Delivery = Annotated[str, Words("Delivery", _DELIVERIES)]
_Ratio = Annotated[str, Words("AspectRatio", _RATIOS)]


class VoiceConsentSignature(Message):
    """That somebody agreed to have a voice copied."""

    signature: str | None = None


class ReplicatedVoiceConfig(Message):
    """A copied voice."""

    mime_type: str | None = None
    voice_sample_audio: Bytes | None = None
    consent_audio: Annotated[Bytes, STUDIO] | None = None
    voice_consent_signature: Annotated[VoiceConsentSignature, STUDIO] | None = None


class PrebuiltVoiceConfig(Message):
    """One of Google's voices."""

    voice_name: str | None = None


class VoiceConfig(Message):
    """A voice."""

    prebuilt_voice_config: PrebuiltVoiceConfig | None = None
    replicated_voice_config: ReplicatedVoiceConfig | None = None
    voice: str | None = None


class SpeakerVoiceConfig(Message):
    """Whose voice it is."""

    speaker: str | None = None
    voice_config: VoiceConfig | None = None


class MultiSpeakerVoiceConfig(Message):
    """Several voices."""

    speaker_voice_configs: list[SpeakerVoiceConfig] | None = None


class SpeechConfig(Message):
    """How speech sounds."""

    voice_config: VoiceConfig | None = None
    language_code: str | None = None
    multi_speaker_voice_config: MultiSpeakerVoiceConfig | None = None


class ImageConfig(Message):
    """What images look like."""

    aspect_ratio: str | None = None
    image_size: str | None = None
    person_generation: Annotated[str, VERTEX] | None = None
    prominent_people: Annotated[str, VERTEX] | None = None
    output_mime_type: Annotated[str, VERTEX] | None = None
    output_compression_quality: Annotated[Int32, VERTEX] | None = None
    image_output_options: Annotated[Fields, VERTEX] | None = None


class AudioResponseFormat(Message):
    """An answer that is heard."""

    mime_type: str | None = None
    delivery: _Delivery | None = None
    bit_rate: Int32 | None = None
    sample_rate: Int32 | None = None


class ImageResponseFormat(Message):
    """An answer that is seen."""

    mime_type: str | None = None
    delivery: _Delivery | None = None
    aspect_ratio: _Ratio | None = None
    image_size: Annotated[str, Words("ImageSize", _SIZES)] | None = None


class TextResponseFormat(Message):
    """An answer that is read."""

    mime_type: str | None = None
    schema: Value | None = None


class VideoResponseFormat(Message):
    """An answer that is watched."""

    delivery: _Delivery | None = None
    aspect_ratio: _Ratio | None = None
    duration: str | None = None
    gcs_uri: str | None = None
    resolution: str | None = None


class ResponseFormat(Message):
    """One form of the answer."""

    text: TextResponseFormat | None = None
    audio: AudioResponseFormat | None = None
    image: ImageResponseFormat | None = None
    video: VideoResponseFormat | None = None


class TranslationConfig(Message):
    """Into which language."""

    target_language_code: str | None = None
    echo_target_language: bool | None = None


class Nothing(Message):
    """A message without members."""


class LanguageHints(Message):
    """Which languages may be heard."""

    language_codes: list[str] | None = None


class AudioTranscriptionConfig(Message):
    """How speech is written down."""

    language_codes: list[str] | None = None
    language_auto: Nothing | None = None
    language_hints: LanguageHints | None = None
    custom_vocabulary: list[str] | None = None
    adaptation_phrases: list[str] | None = None
    word_timestamp: bool | None = None
    diarization: bool | None = None
    mode: Annotated[str, Words("AudioTranscriptionConfig.Mode", ("MODE_UNSPECIFIED", "VERBATIM", "SMART"))] | None = (
        None
    )
    source_text: str | None = None


class WordInfo(Message):
    """When a word was said."""

    word: str | None = None
    start_offset: str | None = None
    end_offset: str | None = None


class Transcription(Message):
    """What was heard."""

    text: str | None = None
    finished: bool | None = None
    language_code: str | None = None
    speaker_label: str | None = None
    words: list[WordInfo] | None = None
    start_offset: str | None = None
    end_offset: str | None = None
