<?php

declare(strict_types=1);

namespace Paloma;

/** The request was not signed with any of the secrets, or too long ago. */
final class WebhookVerificationException extends \RuntimeException
{
}
