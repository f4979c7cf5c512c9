"""A protocol from outside: how many instruments does a frame show?"""

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="crowd",
    question="How crowded is the field of view?",
    run="toy_protocol.crowd:run_crowd",
    load="toy_protocol.crowd:CrowdResult",
    page="toy_protocol.crowd:write_page_of",
    pair="toy_protocol.crowd:pair",
    measures="toy_protocol.crowd:MEASURES",
    outcomes="toy_protocol.crowd:outcomes",
    chapter="toy_protocol.crowd:chapter",
)
