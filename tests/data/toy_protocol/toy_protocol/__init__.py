"""A protocol from outside: how many instruments does a frame show?"""

from surgeval.protocols.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="crowd",
    question="How crowded is the field of view?",
    run="toy_protocol.crowd:run_crowd",
    load="toy_protocol.crowd:load_crowd",
    page="toy_protocol.crowd:write_page_of",
    compare="toy_protocol.crowd:compare_crowd",
    outcomes="toy_protocol.crowd:outcomes",
    chapter="toy_protocol.crowd:chapter",
)
